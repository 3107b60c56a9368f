"""``capture.py TASK.json OUT.json``: learns what one task of a benchmark is, by running it.

The task's own code runs here, in a sandbox. The output is data, and is validated like a declaration
before it is used.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import resource
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

from imported.boundary import LeftOutError

SECONDS = 120.0
"""Seconds of processor time on one core, so that a busy machine imports the same tasks."""


class TooSlowError(BaseException):
    """The capture computed for too long. No benchmark's code catches it as its own error."""


def main(task_file: str, out_file: str) -> int:
    """Write the facts of one task, or why it is left out."""
    task = json.loads(Path(task_file).read_text())
    warnings.simplefilter("ignore")
    output = os.dup(1)
    os.dup2(2, 1)  # the benchmark may print
    signal.signal(signal.SIGPROF, _give_up)
    try:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        facts = _capture(task)
        facts["origin"] = hashlib.sha256(facts["origin"].encode()).hexdigest()
    except LeftOutError as error:
        facts = {"left_out": {"reason": error.reason, "why": error.why}}
    except TooSlowError:
        why = f"one core did not understand it in {SECONDS:.0f} s"
        facts = {"left_out": {"reason": "TOO_SLOW", "why": why}}
    except MemoryError:
        facts = {"left_out": {"reason": "TOO_LARGE", "why": "it needs more memory than there is"}}
    except Exception as error:  # noqa: BLE001 - foreign code raises what it likes
        what = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"[:200]
        facts = {"left_out": {"reason": "DOES_NOT_LOAD", "why": f"the benchmark's code: {what}"}}
    signal.setitimer(signal.ITIMER_PROF, 0)
    os.dup2(output, 1)
    Path(out_file).write_text(json.dumps(facts, indent=1))
    return 0


def _give_up(*_: object) -> None:
    raise TooSlowError


def _capture(task: dict[str, Any]) -> dict[str, Any]:
    import torch

    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    specification = importlib.util.spec_from_file_location(
        "kabuild_adapter", Path("task/reference.py").resolve()
    )
    assert specification is not None
    assert specification.loader is not None
    adapter = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(adapter)
    from imported.tf32 import Watch, has_dot, takes_single

    with Watch() as watch:
        facts: dict[str, Any] = adapter.capture(task["name"], task["files"])
    texts = (Path("task/original", file).read_bytes() for file in task["files"])
    if takes_single(facts["attrs"]) and (watch.multiplied or any(map(has_dot, texts))):
        facts["attrs"]["tf32"] = True
    return facts


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
