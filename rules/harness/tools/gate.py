"""Judges one candidate: ``python tools/gate.py spec.json`` writes ``out/verdict.json``.

The gate ``sanitize`` takes a second argument where a tool of the platform watches the candidate:
the directory of that tool.

Exit 0 for any verdict, 2 for bad input, 3 where nothing could be judged because the task or
the machine failed: then one line on stderr says why, and there is no verdict.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from base.program import MachineFault
from gpu.driver import choose_device
from runners.launcher import Launcher

if TYPE_CHECKING:
    from base.spec import Spec

BAD_INPUT = 2
NOT_JUDGED = 3


def main(arguments: Sequence[str]) -> int:
    """Run one gate in the working directory."""
    if len(arguments) not in {1, 2}:
        return _complain("usage: gate.py SPEC [SANITIZER]", BAD_INPUT)
    choose_device()
    try:
        # First of all, so that the runners' ancestor never held anything secret.
        with Launcher.start() as launcher:
            return _judge(launcher, *map(Path, arguments))
    except MachineFault as fault:
        return _complain(f"machine: {fault}", NOT_JUDGED)


def _judge(launcher: Launcher, path: Path, sanitizer: Path | None = None) -> int:
    import torch
    from base.spec import SpecError, read_spec
    from gpu import session
    from truth.oracle import TaskFault

    torch.set_num_threads(1)  # so that an oracle's sums have one order on every machine
    try:
        spec = read_spec(path)
        if spec.candidate.on_device:
            session.start(spec.candidate.platform)
        files = _run(spec, launcher, sanitizer)
    except SpecError as error:
        return _complain(f"spec: {error}", BAD_INPUT)
    except torch.OutOfMemoryError as error:
        raise MachineFault(f"the device has no memory left for the judge: {error}") from error
    except TaskFault as fault:
        return _complain(f"task: {fault}", NOT_JUDGED)
    out = Path("out")
    out.mkdir(exist_ok=True)
    for name, content in files.items():
        (out / name).write_bytes(content)
    return 0


def _run(spec: Spec, launcher: Launcher, sanitizer: Path | None) -> dict[str, bytes]:
    """The output files of the gate that ``spec`` names.

    No other is imported: whatever is, is compiled first, as no action finds byte code.
    """
    match spec.gate:
        case "perf" | "retention":
            return _timed(spec, launcher)
        case "correctness":
            from correctness import gate as correctness

            verdict = correctness.run(spec, launcher)
        case "unseen":
            from unseen import gate as unseen

            verdict = unseen.run(spec, launcher)
        case "sanitize":
            from sanitize import gate as sanitize

            verdict = sanitize.run(spec, launcher, sanitizer)
        case _:  # admission: `read_spec` knows no other
            from admission import gate as admission

            verdict = admission.run(spec, launcher)
    return {"verdict.json": verdict.to_json()}


def _timed(spec: Spec, launcher: Launcher) -> dict[str, bytes]:
    from perf import gate as perf

    if spec.gate == "perf":
        verdict, samples = perf.run(spec, launcher)
    else:
        from unseen import retention

        verdict, samples = retention.run(spec, launcher)
    return {"verdict.json": verdict.to_json(), "samples.json": samples}


def _complain(what: str, code: int) -> int:
    print("gate.py:", " ".join(what.split()), file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
