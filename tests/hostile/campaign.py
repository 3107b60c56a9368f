"""Many cases on several workers; what they found, and how to see it again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from tests.hostile.jail import ROOT, jailed


@dataclass
class Tally:
    """What came of the cases so far."""

    cases: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    seconds: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)


class Campaign:
    """Runs cases, each named by its kind and number, and keeps the tally."""

    def __init__(self, seed: str, cases: Iterable[tuple[str, int]], log: TextIO | None) -> None:
        self._seed = seed
        self._cases: Iterator[tuple[str, int]] = iter(cases)
        self._log = log
        self._guard = threading.Lock()
        self._began = time.monotonic()
        self.tally = Tally()

    def run(self, workers: int) -> Tally:
        """Run all on so many workers."""
        threads = [threading.Thread(target=self._work) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.tally

    def _work(self) -> None:
        process = None
        while (case := self._next()) is not None:
            process = process or _start(self._seed)
            assert process.stdin
            assert process.stdout
            try:
                process.stdin.write(f"{case[0]} {case[1]}\n")
                process.stdin.flush()
                answer = process.stdout.readline()
            except BrokenPipeError:
                answer = ""
            if answer:
                self._note(case, json.loads(answer))
            else:
                ended = {"what": "the worker ended", "call": "", "detail": f"{process.wait()}"}
                self._note(case, {"calls": 1, "seconds": 0.0, "findings": [ended]})
                process = None
        if process and process.stdin:
            process.stdin.close()
            process.wait()

    def _next(self) -> tuple[str, int] | None:
        with self._guard:
            return next(self._cases, None)

    def _note(self, case: tuple[str, int], said: dict[str, Any]) -> None:
        kind, number = case
        with self._guard:
            tally = self.tally
            tally.cases[kind] += 1
            tally.calls += said["calls"]
            tally.seconds[kind] += said["seconds"]
            for finding in said["findings"]:
                what = f"{kind}: {finding['what']}"
                tally.found[what] += 1
                again = f"--seed={self._seed} --case={kind}:{number}"
                if what not in tally.first:
                    tally.first[what] = again
                    print(f"FOUND  {what}\n       {again}\n       {finding['call'][:300]}")
                if self._log:
                    self._log.write(json.dumps({**finding, "again": again}) + "\n")
                    self._log.flush()
            done = tally.cases.total()
            if done % 500 == 0:
                took = time.monotonic() - self._began
                print(
                    f"{done} inputs, {tally.calls} calls, {took:.0f} s, {len(tally.found)} faults"
                )
                sys.stdout.flush()


def show(tally: Tally, seconds: float) -> None:
    """Print the summary."""
    for kind, count in sorted(tally.cases.items()):
        print(f"  {kind:12} {count:6} inputs  {tally.seconds[kind] / count:6.2f} s each")
    print(f"{tally.cases.total()} inputs, {tally.calls} calls of the program, {seconds:.0f} s")
    for what, count in tally.found.most_common():
        print(f"  {count:5}x {what}\n         {tally.first[what]}")
    print(f"{tally.found.total()} findings of {len(tally.found)} kinds")


def _start(seed: str) -> subprocess.Popen[str]:
    argv: Sequence[str] = jailed([sys.executable, "-m", "tests.hostile.worker", seed])
    process = subprocess.Popen(
        argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    if not process.stdout.readline():
        os._exit(2)  # its own words are on stderr
    return process
