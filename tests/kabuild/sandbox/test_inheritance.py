"""A command's limits, signals and addresses are the sandbox's, whatever the shell has set."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kabuild.sandbox import probe

ROOT = Path(__file__).parents[3]
MODES = [
    pytest.param(
        True, id="box", marks=pytest.mark.skipif(probe() is not None, reason=f"{probe()}")
    ),
    pytest.param(False, id="bare"),
]
LOOK = """
import ctypes, json, os, resource, signal
kinds = "AS CORE CPU DATA FSIZE MEMLOCK MSGQUEUE NICE NOFILE NPROC RTPRIO SIGPENDING STACK".split()
signals = [n for n in signal.valid_signals() if signal.getsignal(n) is signal.SIG_IGN]
found = {
    "limits": {kind: resource.getrlimit(getattr(resource, f"RLIMIT_{kind}")) for kind in kinds},
    "ignored": signals, "blocked": list(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    "personality": ctypes.CDLL(None).personality(ctypes.c_ulong(0xFFFFFFFF)),
    "policy": os.sched_getscheduler(0), "umask": os.umask(0), "env": dict(os.environ),
    "thp": ctypes.CDLL(None).prctl(42, 0, 0, 0, 0), "fds": sorted(os.listdir("/proc/self/fd"))[:3],
}
open("out/found", "w").write(json.dumps(found, sort_keys=True))
"""
SPAWN = """
import sys
from pathlib import Path
from kabuild.sandbox import SandboxLimits, SandboxSpec, Spawner
folder, hermetic, change = Path(sys.argv[1]), sys.argv[2] == "True", sys.argv[3]
(folder / "exec" / "out").mkdir(parents=True)
(folder / "exec" / "look.py").write_text(sys.argv[4])
exec(change)
spec = SandboxSpec(
    argv=("/usr/bin/python3", "look.py"), env={"LC_ALL": "C"}, input_dir=folder / "exec",
    outputs=("out/found",), collect_into=folder, hermetic=hermetic,
    limits=SandboxLimits(wall_seconds=20, memory_bytes=1 << 30, cpu_seconds=9),
)
with Spawner() as spawner:
    done = spawner.run(spec)
sys.exit(done.stderr.decode() if not done.ok else 0)
"""
LIMITS = """
import resource
for kind in "AS DATA FSIZE NOFILE STACK CPU MEMLOCK SIGPENDING".split():
    number = getattr(resource, f"RLIMIT_{kind}")
    hard = resource.getrlimit(number)[1]
    few = {"NOFILE": 60, "STACK": 1 << 20, "CPU": 50, "FSIZE": 1 << 16, "MEMLOCK": 0}
    soft = {**few, "SIGPENDING": 3}.get(kind, 2 << 30)
    resource.setrlimit(number, (soft, hard))
"""
SIGNALS = """
import signal
for number in {signal.SIGCHLD, signal.SIGHUP, signal.SIGTERM, signal.SIGALRM, signal.SIGXCPU}:
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
"""
OTHERS = """
import ctypes, os
os.umask(0o777)
os.environ.update(TZ="Asia/Tokyo", LC_ALL="xx", LANG="yy", PYTHONHASHSEED="7", LD_DEBUG="")
ctypes.CDLL(None).personality(ctypes.c_ulong(0x0040000))  # ADDR_NO_RANDOMIZE
ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE
os.close(0)
os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
"""


def spawn(tmp_path: Path, change: str, *, hermetic: bool) -> subprocess.CompletedProcess[str]:
    folder = tmp_path / str(len([*tmp_path.iterdir()]))
    folder.mkdir()
    return subprocess.run(
        [sys.executable, "-c", SPAWN, str(folder), str(hermetic), change, LOOK],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def found(tmp_path: Path, change: str, *, hermetic: bool) -> object:
    done = spawn(tmp_path, change, hermetic=hermetic)
    assert done.returncode == 0, done.stderr
    newest = max(tmp_path.iterdir(), key=lambda path: int(path.name))
    return json.loads((newest / "out" / "found").read_text())


@pytest.mark.parametrize("hermetic", MODES)
def test_what_a_shell_has_set_reaches_no_command(tmp_path: Path, *, hermetic: bool) -> None:
    plain = found(tmp_path, "", hermetic=hermetic)

    for change in (LIMITS, SIGNALS, OTHERS):
        assert found(tmp_path, change, hermetic=hermetic) == plain, change
    assert isinstance(plain, dict)
    assert plain["limits"]["NOFILE"] == [4096, 4096]
    assert plain["limits"]["CORE"] == [1, 1]
    assert plain["limits"]["MEMLOCK"] == [64 << 10] * 2
    assert plain["limits"]["SIGPENDING"] == [1024] * 2
    assert plain["ignored"] == [13, 25]  # by Python itself


@pytest.mark.parametrize("hermetic", MODES)
@pytest.mark.parametrize(
    ("kind", "limit", "words"),
    [
        ("FSIZE", 1 << 20, "the size of files is limited to 1024 (ulimit -Hf)"),
        ("AS", 40 << 30, "address space is limited to 41943040 (ulimit -Hv)"),
        ("DATA", 3 << 30, "private memory is limited to 3145728 (ulimit -Hd)"),
        ("CPU", 8, "processor time is limited to 8 (ulimit -Ht), but a sandbox needs 11"),
        ("NOFILE", 1000, "the number of open files is limited to 1000 (ulimit -Hn)"),
        ("NPROC", 500, "the number of processes is limited to 500 (ulimit -Hu)"),
        ("MEMLOCK", 4096, "memory that is locked is limited to 4 (ulimit -Hl)"),
        ("SIGPENDING", 9, "the number of signals that wait is limited to 9 (ulimit -Hi)"),
        ("STACK", 8 << 20, "the stack is limited to 8192 (ulimit -Hs), but a sandbox needs 16384"),
    ],
)
def test_a_machine_that_grants_less_is_told_by_its_limit(
    tmp_path: Path, kind: str, limit: int, words: str, *, hermetic: bool
) -> None:
    number = f"resource.RLIMIT_{kind}"
    change = f"import resource; resource.setrlimit({number}, ({limit}, {limit}))"
    if kind == "NPROC" and not hermetic and os.getuid() == 0:
        pytest.skip("the kernel does not count the processes of root")
    done = spawn(tmp_path, change, hermetic=hermetic)

    assert "kabuild.base.errors.SandboxError" in done.stderr
    assert words in done.stderr
    assert done.returncode == 1
