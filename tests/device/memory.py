"""Whether the suite is judged while somebody else has most of the device's memory."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from workplace import Ran, Workplace

LEFT_GIB = 20
"""What is left of each device."""

TOO_LITTLE_GIB = 3
"""With which no config of ``LARGE`` can be timed."""

LARGE = "//tasks/hip2hip/softmax"
_EXPERT = "--agent=expert"
_ANEW = ("--gates=correctness,perf,unseen", "--nocache_test_results")
_HOLD = """\
import sys, torch
held = []
for number in range(torch.cuda.device_count()):
    with torch.cuda.device(number):
        free, _ = torch.cuda.mem_get_info()
        held.append(torch.empty(max(0, free - (int(sys.argv[1]) << 30)), dtype=torch.uint8,
                                device="cuda"))
print("held", flush=True)
sys.stdin.read()
"""


def measure(workplace: Workplace, tasks: Sequence[str]) -> dict[str, Any]:
    """Judge ``tasks`` with ``LEFT_GIB`` of each device, then one task with too little."""
    with _held(LEFT_GIB):
        ran = workplace.test(*tasks, _EXPERT, *_ANEW)
        cases = _cases(workplace, ran)
    with _held(TOO_LITTLE_GIB):
        refused = workplace.test(LARGE, _EXPERT, "--gates=perf", "--nocache_test_results")
    verdicts = [entry["verdict"] for entry in ran.json["targets"]]
    return {
        "left_gib": LEFT_GIB,
        "seconds": round(ran.seconds, 2),
        "verdicts": {one: verdicts.count(one) for one in sorted(set(verdicts))},
        "tasks": cases,
        "too_little_gib": TOO_LITTLE_GIB,
        "refused": [
            {"gate": e["gate"], "verdict": e["verdict"], "summary": e["summary"]}
            for e in refused.json["targets"]
        ],
        "said": [line for line in refused.err.splitlines() if "MEMORY" in line],
    }


def _cases(workplace: Workplace, ran: Ran) -> dict[str, Any]:
    """By task: the most memory that judging it took, and its cases."""
    found = {}
    for entry in ran.json["targets"]:
        if entry["gate"] == "perf":
            package, _, name = entry["task"].removeprefix("//").partition(":")
            samples = workplace.read(f"{package}:{name}.perf", "samples.json")
            verdict = workplace.read(f"{package}:{name}.perf", "verdict.json")
            memory = samples.get("device_memory", {})
            found[f"//{package}"] = {**memory, "configs": verdict.get("cases", [])}
    return found


@contextlib.contextmanager
def _held(left_gib: int) -> Iterator[None]:
    """Somebody else has all of each device but so much."""
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(left_gib)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        if holder.stdout.readline() != "held\n":
            raise OSError("the device's memory could not be taken")
        yield
    finally:
        holder.stdin.close()
        holder.wait(30)
