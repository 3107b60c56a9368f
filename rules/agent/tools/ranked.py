"""One request to rank kernels: what is compiled, what is counted, and the time that is left."""

from __future__ import annotations

import statistics
import time

from jobs import CheckError, Job, Verdict

COMPILE_SECONDS, JUDGE_SECONDS = 120.0, 600.0
"""The limits of one compiler and of one judge."""


class Ranking:
    """The modelled times of some kernels, as they become known.

    A kernel whose compiler or judge fails or is late has none, and the others are not affected.

    Attributes:
        waiting: kernels that are compiled, with their compilers and verdicts.
        ns: by kernel, the nanoseconds.
    """

    def __init__(self, arch: str, end: float) -> None:
        self.waiting: dict[bytes, tuple[Job, Verdict]] = {}
        self.ns: dict[bytes, float] = {}
        self._arch = arch
        self._end = end

    def left(self, most: float) -> float:
        """The seconds that are left, ``most`` at most; 0 if there are none."""
        return min(most, max(0.0, self._end - time.monotonic()))

    def compiled(self, source: bytes, compiler: Job) -> None:
        """Wait for the compiler of a kernel."""
        try:
            verdict = compiler.wait(self.left(COMPILE_SECONDS), "the compiler")
        except CheckError:
            compiler.remove()
        else:
            self.waiting[source] = (compiler, verdict)

    def counted(self, source: bytes, job: Job) -> None:
        """Wait for the judge that counts a kernel."""
        try:
            verdict = job.wait(self.left(JUDGE_SECONDS), "the judge")
        except CheckError:
            return
        finally:
            job.remove()
        times = [case["work_ns"].get(self._arch) for case in verdict["cases"]]
        if verdict["verdict"] == "PASS" and times and all(times):
            self.ns[source] = statistics.geometric_mean(times)
