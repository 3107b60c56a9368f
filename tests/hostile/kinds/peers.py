"""Candidates that speak the runner's protocol themselves, to the real judge."""

from __future__ import annotations

import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.hostile.draw import Draw
from tests.hostile.ground import Ground
from tests.hostile.jail import ROOT
from tests.hostile.kinds.kind import Kind

PEER = Path(__file__).with_name("peer.c")


@cache
def _support() -> Any:
    """The harness's own test support; the peer is compiled once."""
    tools = ("rules/harness/tools", "tests/rules/harness")
    sys.path[:0] = [str(ROOT / path) for path in tools]
    sys.path.append(str(ROOT / "kabuild/sandbox"))
    tempfile.tempdir = "/tmp/peers"
    Path(tempfile.tempdir).mkdir(exist_ok=True)
    import run_support
    from runners import conversation
    from runners.launcher import Launcher

    conversation._LAST_WORDS_SECONDS = 0.2
    return run_support, run_support.native(PEER.read_text(), "peer"), Launcher


def play(draw: Draw, ground: Ground) -> None:
    """One hostile runner: the judge names a fault of it, or sees that nothing was computed."""
    import torch

    support, program, launcher_type = _support()
    from base.program import CandidateFault, RunnerPolicy
    from base.tensors import poison_mask

    seed = draw.randrange(1 << 23)
    ground.calls += 1
    with launcher_type.start() as launcher:
        policy = RunnerPolicy(call_seconds=0.2, batch_seconds=0.5, life_seconds=5.0)
        try:
            with launcher.open(program, support.DOUBLING, policy) as runner:
                runner.load(support.config(), 3)
                inputs = [{"x": torch.full((1000,), float(seed))} for _ in range(3)]
                batch = runner.batch(inputs)
                empty = all(poison_mask(outputs["y"], "f32").all() for outputs in batch.outputs)
                ground.expect(
                    holds=bool(empty), what="outputs that nobody wrote", detail=f"seed {seed}"
                )
        except CandidateFault as fault:
            ground.expect(
                holds=bool(fault.detail), what="a fault without words", detail=str(fault.reason)
            )


KINDS = (Kind("peers", 0.4, play),)
