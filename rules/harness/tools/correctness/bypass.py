"""The kernels stage: rejects candidates whose results do not come from launched kernels.

A task asks for kernels. A candidate that launches one for show and computes elsewhere (with PyTorch
beside Triton, or with host code where the host is the device) passes the other stages, but does not
measure a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

from base.program import CandidateFault, Config
from terms.reasons import Reason
from truth.finding import Finding
from truth.judge import Case, Judge
from truth.proof import SHARE
from truth.stage import StageReport, report

STAGE = "kernels"


def stage(judge: Judge, configs: Sequence[Config]) -> StageReport:
    """Call the candidate once for each config, with its launches left out.

    A candidate that then fails depends on its kernels, as it should.
    """
    side = judge.candidate.without_launches()
    cases = [Case(STAGE, config) for config in configs]
    names = tuple(config.name for config in configs)
    try:
        for case in cases:
            call = judge.call(case)
            try:
                outputs = side.run(case.config, [call.inputs])[0]
            except CandidateFault as fault:
                if fault.reason is Reason.TIMEOUT:
                    break
                continue
            share = judge.assessor.share_right(call, outputs)
            if share > SHARE:
                what = f"{share:.0%} of an output is correct although no kernel ran"
                return report(STAGE, case, Finding(Reason.KERNEL_BYPASSED, what), names)
    finally:
        side.kill()
    return report(STAGE, cases[0], Finding(), names)
