"""The admission gate: decides whether a task is fit for a benchmark. It judges no candidate."""

from __future__ import annotations

from kabuild.rule import Action, Context, Name, Source

from .configs import all_configs
from .gates import SCRIPT_TIER, Judging, Runtime, Side, kernel_name
from .policy import gate_policy
from .signature import read_signature
from .terms import gates

COMPARISON = ("tolerance", "baseline_factor", "call_seconds", "deterministic")
"""The parts of the correctness gate's policy that apply to admission."""


def expert_kernel(ctx: Context) -> Source | None:
    """The expert's version of the editable file; None if the task has no expert."""
    name = kernel_name(ctx)
    experts: tuple[Source, ...] = ctx.attrs["experts"]
    return next((e for e in experts if e.path.rpartition("/")[2] == name), None)


def declare_admission(
    ctx: Context, baseline: Side, expert: Side | None, runtime: Runtime
) -> Action:
    """Declare ``.admission``: checks the task's own kernels over its whole space, and its oracle.

    It does not depend on an agent, and no other gate depends on it.
    """
    signature = read_signature(ctx.attrs)
    judging = Judging(ctx, signature, expert or baseline, baseline, runtime)
    correctness = gate_policy(ctx.attrs, gates.CORRECTNESS, ctx.platform_spec)
    policy = {
        **{name: correctness[name] for name in COMPARISON if name in correctness},
        "samples": ctx.options.samples,
        "expert": expert is not None,
        "brief": ctx.attrs["brief"],
        "declared": [config.to_json() for config in all_configs(ctx.attrs, signature)],
        **({"script": True} if ctx.attrs.get("tier") == SCRIPT_TIER else {}),
    }
    names = (*judging.candidate.names, Name("task/reference.py", ctx.attrs["reference"]))
    return judging.gate(gates.ADMISSION, requires=(), policy=policy, names=names)
