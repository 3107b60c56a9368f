"""``kabuild-check``: have a kernel judged, on the visible configs.

    kabuild-check                     compile, then a quick look at the first config
    kabuild-check correctness         all stages
    kabuild-check perf                times against the baseline
    kabuild-check all                 compile, correctness, perf
    kabuild-check --analyze           what each line asks memory for, and what stands out

As a library, for agents that are written in Python::

    import kabuild_check
    answer = kabuild_check.check(text, gates=("compile", "perf"), budget=0.5)
    answer.passed, answer.speedup, answer.interval, answer.summary
"""

from __future__ import annotations

import argparse
import json
import math
import socket
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOCKET = "/kabuild/run/check"
KERNEL = "/kabuild/kernel"
NOT_PASSED, WRONG_USAGE, NOT_JUDGED = 3, 2, 36
MOST_AT_ONCE = 64
"""Kernels that ``compile_all`` and ``rank`` take, at most."""

_MOST_PARTS = 4  # of a modelled time, the largest
_ALL = ("compile", "correctness", "perf")


class CheckError(Exception):
    """Nothing was judged. ``machine`` is false if the request was invalid."""

    def __init__(self, message: str, *, machine: bool) -> None:
        super().__init__(message)
        self.machine = machine


@dataclass(frozen=True)
class Answer:
    """The verdicts of a check, in order: each is the content of a ``verdict.json``."""

    verdicts: tuple[dict[str, Any], ...]

    @property
    def passed(self) -> bool:
        """Whether all verdicts are PASS."""
        return all(verdict["verdict"] == "PASS" for verdict in self.verdicts)

    @property
    def speedup(self) -> float | None:
        """The mean over the configs, if ``perf`` passed."""
        found = [v["mean_speedup"] for v in self.verdicts if "mean_speedup" in v]
        return float(found[-1]) if found else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Its interval on this machine, if ``perf`` passed: the means of the configs' ``ends``.

        This is wide enough even if the configs share their errors.
        """
        cases = [v["cases"] for v in self.verdicts if "mean_speedup" in v]
        if not cases:
            return None
        low, high = zip(*map(ends, cases[-1]), strict=True)
        return statistics.fmean(low), statistics.fmean(high)

    @property
    def summary(self) -> str:
        """For people: a line for each verdict, followed by its details."""
        lines = []
        for verdict in self.verdicts:
            reason = f" ({verdict['reason']})" if verdict.get("reason") else ""
            lines.append(f"{verdict['gate']}: {verdict['verdict']}{reason}: {verdict['summary']}")
            first, *others = verdict.get("detail", "").splitlines() or [""]
            told = others if verdict["summary"].endswith(first) else [first, *others]
            lines += [f"  {line}" for line in (*told, *_counted(verdict.get("analysis")))]
        return "\n".join(lines)


def ends(case: dict[str, Any]) -> tuple[float, float]:
    """The ends of a config's interval for this machine alone, on which both sides were timed.

    On a device, ``low`` and ``high`` of the case also hold what other machines differ by.
    """
    if "noise" not in case:
        return float(case["low"]), float(case["high"])
    speedup, noise = float(case["speedup"]), float(case["noise"])
    return speedup * math.exp(-noise), speedup * math.exp(noise)


def _counted(analysis: dict[str, Any] | None) -> Iterator[str]:
    """The counts in words: the least traffic of each call, then the most wasteful accesses."""
    if analysis is None:
        return
    for call in analysis["calls"]:
        launches = call["launches"]
        read, written = (
            32 * sum(launch[f"sectors_{done}"] for launch in launches)
            for done in ("read", "written")
        )
        accesses = [access for access in call["accesses"] if access["space"] == "global"]
        moved = 32 * sum(access["warp32"]["sectors"] for access in accesses)
        yield (
            f"[{call['config']}] moves at least {read:,} bytes from memory and {written:,} to it; "
            f"requests move {moved:,}"
        )
        for arch, time in call.get("modelled", {}).items():
            parts = sorted(time["parts"].items(), key=lambda part: -part[1])
            shown = ", ".join(f"{name} {ns / 1e3:.2f}" for name, ns in parts[:_MOST_PARTS])
            yield (
                f"  modelled on {arch} ({time['gpu']}), not measured: {time['ns'] / 1e3:.2f} µs, "
                f"of which {shown}"
            )
    found = analysis["findings"]["warp32"]
    for number, finding in enumerate(found, 1):
        where = f"{finding['file']}:{finding['line']}: " if finding["file"] else ""
        yield f"{number}. {where}{finding['text']} [{finding['config']}]"
    if not found:
        yield "no wasteful accesses for warps of 32"
    yield "--json has the counts of each line"


def check(
    source: str,
    gates: Sequence[str] = ("compile", "smoke"),
    *,
    only: str = "",
    budget: float = 0.0,
    against: str = "",
    path: str = SOCKET,
) -> Answer:
    """Have ``source``, the text of a kernel, judged.

    ``only`` selects the configs whose name contains it; ``budget`` shortens ``perf`` to so many
    seconds. ``against`` is the text of a kernel that replaces the task's baseline in ``perf``.
    Raises CheckError.
    """
    request = {"source": source, "gates": list(gates), "only": only, "budget": budget}
    request |= {"against": against} if against else {}
    return Answer(tuple(_verdicts(request, path)))


def compile_all(sources: Sequence[str], *, path: str = SOCKET) -> tuple[Answer, ...]:
    """Have kernels compiled, several at a time: the compile gate's verdict on each.

    A later ``check`` of one of them reuses the result. At most 64; with none, this returns as soon
    as checks are possible. Raises CheckError.
    """
    return tuple(Answer((verdict,)) for verdict in _verdicts({"sources": list(sources)}, path))


def rank(sources: Sequence[str], *, seconds: float, path: str = SOCKET) -> tuple[float | None, ...]:
    """The modelled nanoseconds of kernels, to choose which to time first; see ``work_ns``.

    None for a kernel that could not be counted, or not within ``seconds``; for at most 64. They are
    made of counts on small configs, without launches, and decide nothing. Raises CheckError, also
    if nothing models this device's times: ``machine`` is false then.
    """
    answer = _ask({"sources": list(sources), "seconds": seconds}, path)
    if "why" in answer:
        raise CheckError(answer["why"], machine=False)
    found: list[float | None] = answer["modelled_ns"]
    return tuple(found)


def _verdicts(request: dict[str, Any], path: str) -> list[dict[str, Any]]:
    verdicts: list[dict[str, Any]] = _ask(request, path)["verdicts"]
    return verdicts


def _ask(request: dict[str, Any], path: str) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(path)
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as answers:
                line = answers.readline()
        except OSError as error:
            raise CheckError(f"no check is possible: {error}", machine=True) from error
    if not line:
        raise CheckError("the check was cut short", machine=True)
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise CheckError(answer["error"], machine=answer["machine"])
    return answer


def kernel_here() -> Path:
    """The editable file of this session."""
    return Path("/workspace") / Path(KERNEL).read_text()


def main(arguments: Sequence[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="kabuild-check",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "gates", nargs="*", help="compile, smoke, correctness, perf or all; default: the first two"
    )
    parser.add_argument("--analyze", action="store_true", help="count accesses to memory")
    parser.add_argument("--file", type=Path, help="a kernel; default: the one in this directory")
    parser.add_argument(
        "--config", default="", help="only the config of configs.json with this name"
    )
    parser.add_argument("--budget", type=float, default=0.0, help="approximate seconds for perf")
    parser.add_argument("--against", type=Path, help="a kernel to use as the baseline of perf")
    parser.add_argument("--json", action="store_true", help="the verdicts as JSON")
    options = parser.parse_args(arguments)
    usual = () if options.analyze else ("compile", "smoke")
    gates = [*(_ALL if "all" in options.gates else options.gates or usual)]
    gates += ["analyze"] if options.analyze else []
    try:
        source = (options.file or kernel_here()).read_text()
        against = options.against.read_text() if options.against else ""
        limits = {"only": options.config, "budget": options.budget}
        answer = check(source, gates, **limits, against=against)
    except CheckError as error:
        print(f"kabuild-check: {error}", file=sys.stderr)
        return NOT_JUDGED if error.machine else WRONG_USAGE
    except (OSError, UnicodeDecodeError) as error:
        print(f"kabuild-check: the kernel cannot be read: {error}", file=sys.stderr)
        return WRONG_USAGE
    print(json.dumps(answer.verdicts, indent=1) if options.json else answer.summary)
    return 0 if answer.passed else NOT_PASSED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
