"""Judges one candidate: ``python tools/gate.py spec.json`` writes ``out/verdict.json``.

The spec names the gate, whose package has a ``gate.py`` with ``run(spec, launcher)``. If a tool of
the platform watches the candidate, the gate ``sanitize`` takes one more argument: the directory of
that tool.

Exits with 0 for any verdict. Otherwise there is no verdict, and one line on stderr says why: 2 for
bad input, 3 if the machine failed, 4 if the task is wrong.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from base.program import MachineFault
from base.task_watch import blame, end_judge, fork_judge
from runners.launcher import Launcher

BAD_INPUT = 2
NOT_JUDGED = 3
TASK_WRONG = 4  # kabuild.model.action.DECLARED_WRONGLY


def main(arguments: Sequence[str]) -> int:
    """Run one gate in the working directory."""
    if len(arguments) not in {1, 2}:
        return _complain("usage: gate.py SPEC [SANITIZER]", BAD_INPUT)
    if (ended := fork_judge()) is None:
        end_judge(lambda: _judge_all(*map(Path, arguments)))
    code, fault = ended
    return _blame(fault) if fault else code


def _judge_all(path: Path, *arguments: Path) -> int:
    try:
        # First of all, so that the runners' ancestor never held anything secret.
        with Launcher.start() as launcher:
            return _judge(launcher, path, *arguments)
    except MachineFault as fault:
        return _complain(f"machine: {fault}", NOT_JUDGED)


def _judge(launcher: Launcher, path: Path, *arguments: Path) -> int:
    import torch
    from base.spec import SpecError, read_spec
    from gpu import session
    from terms.verdict import write_verdict
    from truth import keeper, process_state, refused_calls
    from truth.oracle import TaskFault

    torch.set_num_threads(1)  # so that an oracle's sums have one order on every machine
    try:
        spec = read_spec(path)
        for program in (spec.candidate, spec.baseline):
            launcher.prepare(program)
        on_device = spec.candidate.on_device
        if on_device:
            session.start(spec.candidate.platform)
        process_state.hold(on_device=on_device)
        refused_calls.hold()
        verdict = _gate(spec.gate).run(spec, launcher, *arguments)
        if said := keeper.last_look():
            raise TaskFault(said)
    except SpecError as error:
        return _complain(f"spec: {error}", BAD_INPUT)
    except torch.OutOfMemoryError as error:
        raise MachineFault(f"the judge ran out of device memory: {error}") from error
    except MemoryError as error:
        raise MachineFault(f"the judge ran out of memory: {error}") from error
    except TaskFault as fault:
        blame(str(fault))
        return TASK_WRONG
    except Exception:
        if said := keeper.last_look():  # this may be why the judge failed
            blame(said)
        raise
    write_verdict(verdict)
    return 0


def _gate(name: str) -> ModuleType:
    """The gate's own module. Its package is missing from the actions of other gates."""
    from base.spec import SpecError

    try:
        return importlib.import_module(f"{name}.gate")
    except ModuleNotFoundError as error:
        if f"{name}.gate".startswith(error.name or "?"):
            raise SpecError(f"unknown judging gate {name!r}") from None
        raise


def _blame(fault: str) -> int:
    print(" ".join(fault.split()), file=sys.stderr)
    return TASK_WRONG


def _complain(what: str, code: int) -> int:
    print("gate.py:", " ".join(what.split()), file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
