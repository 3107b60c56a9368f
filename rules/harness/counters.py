"""The counters gate, on request: the vendor's profiler watches the candidate on a device."""

from __future__ import annotations

from kabuild.rule import Action, AnalysisError, Context, Gate, Label, Reason, Role, Toolchain, When

from .compilers import home
from .gates import Judging, Runtime, Side
from .hip import hip_alone
from .judge_files import COUNTERS as NAME
from .signature import read_signature

COUNTERS = Gate(NAME, When.ON_REQUEST, Role.PROFILES)
COUNTERS_FILE = "counters.json"
_ROLE = "gpu-profiler"


def declare_counters(ctx: Context, compiled: Action, candidate: Side) -> None:
    """Declare ``.counters`` after ``.compile``, if this machine has the platform's profiler.

    No other gate depends on it, so it does not affect scores. The candidate runs as it was
    compiled, and all of its kernels may run.
    """
    profiler = _profiler(ctx)
    if profiler is None:
        return
    is_native = candidate.program["abi"] == "hip"
    runtime = hip_alone(ctx) if is_native else Runtime()
    judging = Judging(ctx, read_signature(ctx.attrs), candidate, candidate, runtime)
    judging.gate(
        NAME,
        requires=(compiled,),
        policy={},
        arguments=(home(profiler),),
        toolchains=(profiler,),
        outputs=(COUNTERS_FILE,),
        platform=ctx.platform,
    )


def _profiler(ctx: Context) -> Toolchain | None:
    """The platform's profiler; None if it has none, or this machine does not.

    Raises AnalysisError.
    """
    label = ctx.platform_spec.profiler
    found = ctx.toolchain_here(Label.parse(label)) if label else None
    if found and found.role != _ROLE:
        raise AnalysisError(
            Reason.NO_TOOLCHAIN,
            f"{label}, the profiler of the platform {ctx.platform.name}, has the role "
            f"'{found.role}'",
            position=ctx.target.position,
            hint=f"its platform.toml names one with the role '{_ROLE}'",
        )
    return found
