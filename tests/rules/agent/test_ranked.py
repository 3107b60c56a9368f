"""Kernels are ranked within the time that was asked for, and nothing of them is left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.testkit.cli import REPOSITORY

PATHS = [str(REPOSITORY / part) for part in ("kabuild", "rules/agent/tools", "rules/harness/tools")]
# Compilers and judges that only sleep and then write a verdict: real ones do not hang on request.
ASK = """
import json, os, sys, time
sys.path += sys.argv[2:]
from pathlib import Path
from types import SimpleNamespace
import jobs
from bench import Bench

class Fake(Bench):
    most = 0
    running = 0

    def warm_up(self):
        pass

    def _sleeper(self, job, seconds, verdict):
        def child():
            time.sleep(seconds)
            (job / "out/verdict.json").write_text(json.dumps(verdict))
        Fake.running += 1
        Fake.most = max(Fake.most, Fake.running)
        return jobs.Job(jobs.fork(child), job, job / "stderr")

    def _start(self, source, command=()):
        job = self._job()
        (job / "source").write_bytes(source)
        return self._sleeper(job, 60 if b"compiler" in source else 0.01, {"verdict": "PASS"})

    def _counted(self, counting, compiler, compiled, only=""):
        source = (compiler.job / "source").read_bytes()
        cases = [{"work_ns": {"toy": 2.0}}, {"work_ns": {"toy": 8.0}}]
        if b"partly" in source:
            cases[0]["work_ns"] = {}
        verdict = {"verdict": "FAIL" if b"wrong" in source else "PASS", "cases": cases}
        return self._sleeper(self._job(), 60 if b"judge" in source else 0.01, verdict)

def counted(wait):
    def instead(self, seconds, what):
        try:
            return wait(self, seconds, what)
        finally:
            Fake.running -= 1
    return instead

jobs.Job.wait = counted(jobs.Job.wait)
scratch = Path(sys.argv[1])
order = SimpleNamespace(check=SimpleNamespace(counting=SimpleNamespace(ranks="toy", compile=())))
bench = Fake(order, Path("/nowhere"), scratch)
started = time.monotonic()
kernels = [b"good", b"compiler hangs", b"good", b"judge hangs", b"wrong", b"partly"]
quick = [b"good", b"wrong", b"partly", *(b"%d" % number for number in range(9))]
found = [bench.rank(quick, 60.0), bench.rank(kernels, 1.0)]
seconds = time.monotonic() - started
try:
    os.waitpid(-1, os.WNOHANG)
    left = True
except ChildProcessError:
    left = False
width = max(1, min(8, len(os.sched_getaffinity(0)) // 2))
print(json.dumps([found, seconds, left, os.listdir(scratch), Fake.most <= width]))
"""


def test_what_hangs_costs_no_more_than_the_time_and_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(tmp_path), *PATHS],
        capture_output=True,
        text=True,
        check=True,
    )

    (quick, hanging), seconds, processes, files, few = json.loads(done.stdout)
    assert quick[:3] == [4.0, None, None], "the mean of both; counts that are not whole have none"
    assert quick[3:] == [4.0] * 9
    assert hanging[1] is None
    assert hanging[0] == hanging[2]
    assert seconds < 30, "one of them would take a minute"
    assert not processes
    assert files == []
    assert few, "as many at once as leave half of the processors to others"


REFUSED = """
import json, socket, sys
sys.path += sys.argv[1:]
import checks

class Bench:
    def rank(self, sources, seconds):
        if seconds == 7:
            raise ValueError("nothing models times")
        return [seconds]

def ask(text):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(text.encode() + bytes([10]))
        theirs.settimeout(5)
        request, answer = checks._handle(theirs, Bench())
        return answer, checks._entry(request, answer, 0.0, 0.0)["gates"]

odd = ["NaN", "Infinity", "-1", "true", '"3"', "null", "9" * 400]
texts = [json.dumps({"sources": ["x"]})[:-1] + f', "seconds": {value}}}' for value in (3, 7, *odd)]
texts.append('{"source": "x", "gates": ["perf"], "budget": ' + "9" * 400 + "}")
texts.append(json.dumps({"sources": ["x"] * 65, "seconds": 1}))
print(json.dumps([ask(text) for text in texts]))
"""


def test_odd_numbers_of_seconds_are_refused_and_no_model_is_no_error() -> None:
    done = subprocess.run(
        [sys.executable, "-c", REFUSED, *PATHS], capture_output=True, text=True, check=True
    )

    known, unknown, *odd = json.loads(done.stdout)
    assert known == [{"modelled_ns": [3.0]}, ["rank"]]
    assert unknown == [{"modelled_ns": [None], "why": "nothing models times"}, ["rank"]]
    assert len(odd) == 9
    assert all(answer["machine"] is False for answer, _ in odd)
    assert "'seconds' is no number from 0 to 86400" in odd[0][0]["error"]
    assert "at most 64 kernels" in odd[-1][0]["error"]
