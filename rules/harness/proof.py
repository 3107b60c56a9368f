"""The proof gate: checks that an imported task still asks for the same as its original."""

from __future__ import annotations

from kabuild.rule import Action, Artifact, Context, Gate, Source, When

from . import judge_files
from .configs import all_configs
from .gates import Judging, Runtime, Side
from .policy import gate_policy
from .signature import read_signature
from .terms import gates

_COMPARISON = ("tolerance", "baseline_factor")
"""The parts of the correctness gate's policy that apply to the comparison."""

PROOF = Gate(judge_files.PROOF, When.VALIDATE)


def declare_proof(ctx: Context, baseline: Side, runtime: Runtime) -> Action | None:
    """Declare ``.proof`` if the original's own check is known. No other gate depends on it."""
    files: tuple[Source, ...] = ctx.attrs["check"]
    if not files:
        return None
    signature = read_signature(ctx.attrs)
    correctness = gate_policy(ctx.attrs, gates.CORRECTNESS, ctx.platform_spec)
    policy = {
        **{name: correctness[name] for name in _COMPARISON if name in correctness},
        "declared": [config.to_json() for config in all_configs(ctx.attrs, signature)],
    }
    inputs: dict[str, Artifact] = {f"task/original/{file.path}": file for file in files}
    judging = Judging(ctx, signature, baseline, baseline, runtime)
    return judging.gate(judge_files.PROOF, requires=(), policy=policy, inputs=inputs)
