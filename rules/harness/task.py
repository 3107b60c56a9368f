"""Common parts of kernel tasks: attributes, checks, and the judge's specification."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kabuild.rule import AttributeProblem, Context, attr

from .comparison import check_compare
from .configs import Config, all_configs, check_dtypes, visible_configs
from .expressions import check_condition, check_expression, read_ranges, value_of
from .names import check_name
from .originals import ORIGINAL_ATTRS
from .policy import check_policies
from .scalar_ranges import check_scalar_ranges, read_scalar_ranges
from .signature import Signature, read_signature
from .terms import gates

_LARGEST_CAP = 2**40
_MOST_FLOPS = 10**20
_MOST_TEXTS = 100
SUBTARGETS = ("agent", "expert.compile")


def check_brief(text: str) -> None:
    """Refuse an empty text. Raises AttributeProblem."""
    if not text.strip():
        raise AttributeProblem("it is empty", hint="say what the kernel computes")


TASK_ATTRS: Mapping[str, attr.Attr] = {
    "kernel": attr.file("The file that a solution replaces.", required=True),
    "reference": attr.file("The oracle: reference.py.", required=True),
    **ORIGINAL_ATTRS,
    "brief": attr.string(
        "What the kernel computes, for the one who optimises it.", required=True, check=check_brief
    ),
    "entry": attr.string(
        "The function that is called; one symbol per dtype in HIP.", required=True
    ),
    "inputs": attr.table("Input tensors: { x = 'T[rows, cols]' }.", required=True),
    "outputs": attr.table("Output tensors.", required=True),
    "scalars": attr.table("Scalar arguments and their defaults."),
    "scalar_ranges": attr.table(
        "Values of scalars in hidden configs and at the edges: { eps = '1e-8..1e-4' }."
    ),
    "dims": attr.table("The shape space: { rows = '1..65536' }.", required=True),
    "where": attr.strings("Conditions on the dims: ['channels % groups == 0']."),
    "dtypes": attr.strings("What T may be.", required=True),
    "configs": attr.tables("The visible configs.", required=True),
    "shapes_from": attr.strings("Public models whose sizes the configs have: ['Llama 3 8B']."),
    "platform_configs": attr.by_platform("Visible configs that replace them on one platform."),
    "limits": attr.by_platform("Caps of unseen configs: { cpu = { elements = 65536 } }."),
    "flops": attr.string("Operations of one call, an expression of dims.", default="0"),
    "compare": attr.table("How outputs are compared: { token = 'sampled(seed)' }."),
    "tolerance": attr.table("Tolerances in all gates: { f16 = { atol = 1e-3, rtol = 1e-3 } }."),
    "tf32": attr.boolean(
        "Whether the original multiplies f32 as TF32 on platforms that do so by default."
    ),
    "distributions": attr.strings(
        "Further distributions of values, whose names are passed to the reference's inputs()."
    ),
    **{
        gate: attr.table(f"Changes to the policy of the gate {gate}.") for gate in gates.WITH_POLICY
    },
    "experts": attr.files(
        "The expert's solution, which admission tries.", default=("solutions/expert/*",)
    ),
    "solutions": attr.tree("Where solutions lie, by agent.", default="solutions"),
}
"""The attributes of every family of kernel tasks."""


def check_task(attrs: Mapping[str, Any]) -> None:
    """Refuse an inconsistent task. Raises AttributeProblem."""
    check_dtypes(attrs["dtypes"])
    signature = read_signature(attrs)
    for index, condition in enumerate(attrs["where"]):
        check_condition(condition, signature.dims, ("where", index))
    configs = all_configs(attrs, signature)
    check_scalar_ranges(attrs, signature, configs)
    check_name(attrs["entry"], "entry: must be a function's name", ("entry",))
    check_expression(attrs["flops"], signature.dims, ("flops",))
    _check_flops(attrs, configs)
    check_compare(attrs["compare"], signature)
    check_policies(attrs)
    _check_limits(attrs["limits"])
    _check_texts(attrs)


def _check_limits(limits: Mapping[str, Any]) -> None:
    hint = "write { elements = 65536 }, and extent = 1024 for the longest dim"
    for platform, caps in limits.items():
        if not isinstance(caps, Mapping) or "elements" not in caps:
            what = f"the limits of '{platform}' are not valid caps"
            raise AttributeProblem(what, ("limits", platform), hint)
        for name, cap in caps.items():
            path = ("limits", platform, name)
            if name not in {"elements", "extent"}:
                raise AttributeProblem(f"there is no limit '{name}'", path, hint)
            if type(cap) is not int or not 1 <= cap <= _LARGEST_CAP:
                what = f"'{name}' is {cap!r}, expected an integer from 1 to {_LARGEST_CAP:,}"
                raise AttributeProblem(what, path)


def _check_texts(attrs: Mapping[str, Any]) -> None:
    """Refuse implausibly long lists and empty texts."""
    for name in ("where", "shapes_from"):
        texts = attrs.get(name) or ()
        if len(texts) > _MOST_TEXTS:
            what = f"'{name}' has {len(texts)} entries: at most {_MOST_TEXTS}"
            raise AttributeProblem(what, (name,))
        for index, text in enumerate(texts):
            if not text.strip() or not text.isprintable():
                raise AttributeProblem(
                    f"{text!r} has no printable text", (name, index), "remove it"
                )


def _check_flops(attrs: Mapping[str, Any], configs: Iterable[Config]) -> None:
    """Refuse a count that is invalid in a visible config or in a corner of the shape space."""
    visible = [dict(config.dims) for config in configs]
    ranges = read_ranges(attrs["dims"])
    corners = [{name: bounds[end] for name, bounds in ranges.items()} for end in (0, 1)]
    for dims in (*visible, *corners):
        where = ", ".join(f"{name}={value}" for name, value in dims.items())
        try:
            value = value_of(attrs["flops"], dims)
        except ZeroDivisionError:
            what = f"'{attrs['flops']}' divides by zero where {where}"
            raise AttributeProblem(what, ("flops",)) from None
        if value < 0:
            what = f"'{attrs['flops']}' is {value} where {where}: a count is not negative"
            raise AttributeProblem(what, ("flops",))
        if value > _MOST_FLOPS and dims in visible:
            what = f"'{attrs['flops']}' is more than {_MOST_FLOPS:.0e} where {where}"
            raise AttributeProblem(what, ("flops",), "no device computes that in a day")


def judge_spec(
    ctx: Context,
    gate: str,
    *,
    signature: Signature,
    candidate: Mapping[str, str],
    baseline: Mapping[str, str],
    libraries: tuple[str, ...],
    runner: str,
    launch_filter: str,
    default_elements: int,
    policy: Mapping[str, Any],
) -> dict[str, Any]:
    """The ``spec.json`` of one gate, with the paths of its sandbox.

    All gates derive their seeds from the salt; only ``unseen`` gets the salt itself, to draw hidden
    configs.
    """
    platform = ctx.platform.name
    ranges = read_scalar_ranges(ctx.attrs, signature)
    scalars = {name: list(bounds) for name, bounds in ranges.items()}
    caps = ctx.attrs["limits"].get(platform, {"elements": default_elements})
    return {
        "schema": 1,
        "gate": gate,
        "platform": platform,
        "family": ctx.target.kind,
        "candidate": dict(candidate),
        "baseline": dict(baseline),
        "libraries": list(libraries),
        "runner": runner,
        **({"launch_filter": launch_filter} if launch_filter else {}),
        "reference": "task/reference.py",
        "signature": signature.to_json(),
        "space": {
            "dims": {k: list(v) for k, v in read_ranges(ctx.attrs["dims"]).items()},
            "dtypes": list(ctx.attrs["dtypes"]),
            **({"where": list(ctx.attrs["where"])} if ctx.attrs["where"] else {}),
            **({"scalars": scalars} if scalars else {}),
        },
        "configs": [c.to_json() for c in visible_configs(ctx.attrs, signature, platform)],
        "flops": ctx.attrs["flops"],
        "limits": dict(caps),
        "salt": ctx.options.salt,
        "compare": dict(ctx.attrs["compare"]),
        "policy": dict(policy),
        **({"tf32": True} if ctx.attrs["tf32"] and ctx.platform_spec.tf32 else {}),
    }
