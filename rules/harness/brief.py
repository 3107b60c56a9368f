"""BRIEF.md: the task description, for agents and people who solve it."""

from __future__ import annotations

from kabuild.rule import Context

from .expressions import read_ranges
from .scalar_ranges import Bounds, read_scalar_ranges
from .signature import Signature
from .tensors import Tensor

_TEXT = """\
# {name}

{brief}

## What you may change

Only `{kernel}`: no other file is handed in. It must keep this interface:

{offers}

| argument | element type | shape |
|---|---|---|
{arguments}

{scalars}`T` is one of: {dtypes}. The kernel must be correct for every shape in this space.
Its speed is measured on the shapes in configs.json.

{space}

`reference.py` defines the inputs and the correct outputs.

## How it is judged

The kernel is compiled, then compared with a float64 oracle on shapes, values and edge cases,
some of them hidden, then timed against the {baseline}. Every timed call is verified.
Score: {score}.

`kabuild-check` does the same on the visible configs, as often as you like:

    kabuild-check                  compile, then one quick test of correctness
    kabuild-check correctness      all stages
    kabuild-check perf             times against the {baseline}
    kabuild-check all              all of these, and --help for more
{counts}
CHEATSHEET.md explains how to write kernels here. TARGET.md describes the machine.
"""

_COUNTS = """\
    kabuild-check --analyze        memory accesses of each line, and the most wasteful ones
"""
_BASELINES = {"torch2hip": "PyTorch code"}
_SCORES = {
    "aka": "20 for compiling, 100 for correct, 100 x mean speedup",
    "aka-v4": "1 - 1.05 / mean speedup, at least 0",
    "fast_p": "correct and faster than the baseline",
    "geomean": "geometric mean of the speedups",
}


def brief_text(ctx: Context, signature: Signature, kernel: str, *, counts: bool = False) -> str:
    """The text for the task of ``ctx``; with ``counts`` it offers to count accesses."""
    attrs = ctx.attrs
    ranges = read_ranges(attrs["dims"])
    varied = read_scalar_ranges(attrs, signature)
    scalars = "".join(
        f"- scalar `{name}`, usually {value}{_varied(varied.get(name))}\n"
        for name, value in signature.scalars
    )
    return _TEXT.format(
        name=ctx.target.label.name,
        brief=attrs["brief"].strip(),
        kernel=kernel,
        offers=_offers(ctx, signature, kernel),
        arguments="\n".join(
            (
                *(_row("input", tensor) for tensor in signature.inputs),
                *(_row("output", tensor) for tensor in signature.outputs),
            )
        ),
        scalars=f"{scalars}\n" if scalars else "",
        dtypes=", ".join(attrs["dtypes"]),
        space="\n".join(f"- `{name}` from {low} to {high}" for name, (low, high) in ranges.items()),
        baseline=_BASELINES.get(ctx.target.kind, "original kernel"),
        counts=_COUNTS if counts else "",
        score=_SCORES[ctx.options.policy],
    )


def _varied(bounds: Bounds | None) -> str:
    return f", from {bounds[0]} to {bounds[1]} in unseen configs" if bounds else ""


def _offers(ctx: Context, signature: Signature, kernel: str) -> str:
    if call := ctx.attrs.get("call"):
        return _called(ctx, signature, call)
    entry, dtypes = ctx.attrs["entry"], ctx.attrs["dtypes"]
    tensors = [tensor.name for tensor in (*signature.inputs, *signature.outputs)]
    scalars = [name for name, _ in signature.scalars]
    if kernel.endswith(".py"):
        named = ", ".join([*scalars, *signature.dims])
        return f"- `def {entry}({', '.join(tensors)}, *, {named})`, which writes its outputs"
    order = ", ".join([*tensors, *scalars, *signature.dims, "stream"])
    return "\n".join(f'- `extern "C" hipError_t {entry}_{d}({order})`' for d in dtypes)


def _called(ctx: Context, signature: Signature, call: str) -> str:
    """How a solution is called, and the call's other effects."""
    lines = [f"- it is called as `{call.strip()}`"]
    if name := ctx.attrs["baseline"]:
        lines.append(f"- `{name}` in the original kernel has the role of the first name above")
    if signature.updates:
        names = ", ".join(f"`{name}`" for name in signature.updates)
        lines.append(f"- it updates {names} in place and must leave all other inputs unchanged")
    if signature.state:
        names = ", ".join(f"`{tensor.name}`" for tensor in signature.state)
        lines.append(f"- it takes these weights, drawn anew for each test: {names}")
    return "\n".join(lines)


def _row(role: str, tensor: Tensor) -> str:
    shape = ", ".join(tensor.shape)
    more = f"; a list of {tensor.count}" if tensor.count else ""
    more += "; may be None" if tensor.optional else ""
    more += f"; {tensor.layout}" if tensor.layout else ""
    return f"| {role} `{tensor.name}` | {tensor.dtype} | {shape}{more} |"
