"""The kernels stage: what comes out right although no launched kernel runs, no kernel computes.

A task asks for kernels. Whoever launches one for show and computes elsewhere (with PyTorch
beside Triton, with host code where the host is the device) is right in the other stages and
measures something else than a kernel.
"""

from __future__ import annotations

from base.program import CandidateFault, Config, Reason
from truth.assessment import Finding
from truth.judge import Case, Judge

from correctness.stage import StageReport, report

STAGE = "kernels"
SHARE = 0.5  # a kernel may leave to a copy what only has to be copied


def stage(judge: Judge, config: Config) -> StageReport:
    """Call the candidate once with its launches left out.

    A candidate that fails so has waited for its kernels, as it should.
    """
    case = Case(STAGE, config)
    call = judge.call(case)
    side = judge.candidate.without_launches()
    try:
        outputs = side.run(config, [call.inputs])[0]
    except CandidateFault:
        return report(STAGE, case, Finding(), (config.name,))
    finally:
        side.kill()
    share = judge.assessor.share_right(call, outputs)
    finding = Finding()
    if share > SHARE:
        what = f"{share:.0%} of an output is right although no launched kernel ran"
        finding = Finding(Reason.KERNEL_BYPASSED, what)
    return report(STAGE, case, finding, (config.name,))
