"""Checks: compile a kernel and judge it as the gates do, on the visible configs.

Runs in the session's sandbox, where the judge's tools are; the agent only gets what they say. The
compiler runs in its own sandbox, laid out as for the compile gate; a judge runs in a fork of
this process, which has everything imported by then, and puts the candidate's runner into a second
sandbox as ever.
"""

from __future__ import annotations

import importlib
import json
import os
import secrets
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from desk import toolchain_mounts
from jobs import Job, Several, Verdict, fork
from order import Counting, Order
from ranked import COMPILE_SECONDS, JUDGE_SECONDS, Ranking
from sandbox.namespaces import (  # type: ignore[import-not-found]
    Bind,
    Limits,
    View,
    fork_contained,
    system_binds,
)

SMOKE = "smoke"
SMOKE_POLICY: Mapping[str, Any] = {"edges": 0, "repeats": 2, "distributions": ["default"]}
_ROOT = "/exec"
_COMPILING = Limits(memory_bytes=4 << 30, processes=128)
_SCRATCH = 1 << 30
MOST_COMPILED = 64
"""Kernels whose compilation is remembered."""

_WARM = (
    *("gate", "correctness.gate", "perf.gate"),
    *("base.spec", "truth.oracle", "gpu.session", "runners.config_memory"),
)
_WARM_BY_ABI = {
    "call": ("pyrunner.process", "pyrunner_call.called"),
    "python": ("triton", "triton_apart.apart", "pyrunner.process"),
}
_ENVIRONMENT = {
    "HOME": "/tmp",  # noqa: S108 - the sandbox's own
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "TZ": "UTC",
}
_OF_THE_DEVICE = ("KABUILD_DEVICE", "LD_LIBRARY_PATH")
"""Variables that tell a judge which device the session was given, and where its driver is."""


class Bench:
    """Where the kernels of one session are checked, one after the other.

    ``root`` is the input root; ``scratch`` an empty directory of ours.
    """

    def __init__(self, order: Order, root: Path, scratch: Path) -> None:
        self._order = order
        self._root = root
        self._scratch = scratch
        self._salt = secrets.token_hex(16)
        self._count = 0
        self._compiled: dict[bytes, tuple[Verdict, Path]] = {}

    def warm_up(self) -> None:
        """Import what judges need, so that their forks find it."""
        tools = str(self._root / "check" / "tools")
        if tools in sys.path:
            return
        sys.path.insert(0, tools)
        abi = str(self._order.check.specs["correctness"]["candidate"]["abi"])
        for name in (*_WARM, *_WARM_BY_ABI.get(abi, ())):
            importlib.import_module(name)

    def compile(self, source: bytes) -> tuple[Verdict, Path]:
        """The verdict of the compile gate, and the artifact where that is PASS."""
        found = self._compiled.pop(source, None)
        if found is None:
            found = self._finish(self._start(source))
            self._make_room()
        self._compiled[source] = found  # the last to go
        return found

    def compile_all(self, sources: Sequence[bytes]) -> list[Verdict]:
        """The verdicts of the compile gate, ``MOST_COMPILED`` at most.

        As many compilers run at a time as leave half of the processors to the measurement beside
        this session; they have ended when this returns, so nothing is measured here while they run.
        """
        waiting = [source for source in dict.fromkeys(sources) if source not in self._compiled]
        with Several() as several:
            for source in waiting:
                several.add(partial(self._start, source), partial(self._keep, source))
        return [self.compile(source)[0] for source in sources]

    def _keep(self, source: bytes, compiler: Job) -> None:
        found = self._finish(compiler)
        self._make_room()
        self._compiled[source] = found

    def _make_room(self) -> None:
        if len(self._compiled) >= MOST_COMPILED:
            oldest = next(iter(self._compiled))
            _remove(self._compiled.pop(oldest)[1].parent.parent)

    def _start(self, source: bytes, command: Sequence[str] = ()) -> Job:
        """Start the compiler on a kernel; with ``command``, another one."""
        job = self._job()
        (job / "candidate").mkdir()
        (job / "candidate" / self._order.kernel).write_bytes(source)
        binds = [
            *system_binds(),
            *(Bind(path, path) for path in toolchain_mounts()),
            *(Bind(str(p), f"{_ROOT}/{p.name}") for p in (self._root / "toolkit").iterdir()),
            Bind(str(job / "candidate"), f"{_ROOT}/candidate"),
            Bind(str(job / "out"), f"{_ROOT}/out", writable=True),
        ]
        view = View(tuple(binds), ((_ENVIRONMENT["HOME"], _SCRATCH),), _ROOT, "kabuild")
        argv = list(command or self._order.check.compile)
        stderr = job / "stderr"
        with stderr.open("wb") as log:
            fd = log.fileno()
            pid = fork_contained(
                view, _COMPILING, lambda: _execute(argv, fd), keep_fds=(fd,), seccomp="strict"
            )
        return Job(pid, job, stderr)

    def _finish(self, compiler: Job) -> tuple[Verdict, Path]:
        verdict = compiler.wait(COMPILE_SECONDS, "the compiler")
        return verdict, compiler.job / "out" / self._order.check.artifact

    def judge(
        self,
        gate: str,
        artifact: Path,
        only: str = "",
        changes: Mapping[str, Any] | None = None,
        against: Path | None = None,
    ) -> Verdict:
        """The verdict of a gate on a compiled kernel, on those configs whose name has ``only``.

        ``gate`` is ``smoke``, ``correctness`` or ``perf``; ``changes`` are to its policy.
        ``against`` is a compiled kernel to time against, instead of the task's baseline.
        """
        self.warm_up()
        job = self._laid_out("check")
        (job / "candidate").mkdir()
        shutil.copyfile(artifact, job / "candidate" / artifact.name)
        spec = self._spec(gate, only, changes or {})
        if against is not None:
            (job / "against").mkdir()
            shutil.copyfile(against, job / "against" / against.name)
            spec["baseline"] = {**spec["candidate"], "path": f"against/{against.name}"}
        try:
            return {**self._begin(job, spec).wait(JUDGE_SECONDS, "the judge"), "gate": gate}
        finally:
            _remove(job)

    def analyze(self, source: bytes, only: str = "") -> Verdict:
        """The verdict of the gate ``analyze`` on a kernel's text, with ``analysis``: its counts.

        Raises ValueError if nothing counts.
        """
        counting = self._counting()
        self.warm_up()
        compiler = self._start(source, counting.compile)
        try:
            compiled = compiler.wait(COMPILE_SECONDS, "the compiler")
            job = self._counted(counting, compiler, compiled, only)
        finally:
            compiler.remove()
        try:
            verdict = job.wait(JUDGE_SECONDS, "the judge")
            analysis = json.loads((job.job / "out" / "analysis.json").read_bytes())
            return {**verdict, "analysis": analysis}
        finally:
            job.remove()

    def rank(self, sources: Sequence[bytes], seconds: float) -> list[float | None]:
        """The nanoseconds that a fit makes of the counts of each kernel, without its launches.

        The mean over its configs. None for a kernel that could not be counted whole, or not within
        ``seconds``. Several are counted at a time, as ``compile_all`` compiles. Raises ValueError
        if nothing models the times of this session's device.
        """
        counting = self._counting()
        if not counting.ranks:
            raise ValueError("nothing models the times of this session's device")
        self.warm_up()
        ranking = Ranking(counting.ranks, time.monotonic() + seconds)
        try:
            with Several() as several:
                for source in dict.fromkeys(sources):
                    if ranking.left(1.0):
                        start = partial(self._start, source, counting.compile)
                        several.add(start, partial(ranking.compiled, source))
            with Several() as several:
                for source, (compiler, verdict) in ranking.waiting.items():
                    if ranking.left(1.0):
                        start = partial(self._counted, counting, compiler, verdict)
                        several.add(start, partial(ranking.counted, source))
        finally:
            for compiler, _ in ranking.waiting.values():
                compiler.remove()
        return [ranking.ns.get(source) for source in sources]

    def _counting(self) -> Counting:
        counting = self._order.check.counting
        if counting is None:
            raise ValueError(
                "this kernel cannot be analyzed: HIP and Triton kernels can, on cpu; on GPUs' "
                "platforms, if the agent declares what 'counts'"
            )
        return counting

    def _counted(self, counting: Counting, compiler: Job, compiled: Verdict, only: str = "") -> Job:
        """Start the judge that counts what an instrumented kernel does."""
        job = self._laid_out("check", "counted")
        try:
            candidate = job / "candidate"
            candidate.mkdir()
            (candidate / "compile.json").write_text(json.dumps(compiled))
            for name in (self._order.check.artifact, *counting.outputs):
                if (made := compiler.job / "out" / name).is_file():
                    shutil.copyfile(made, candidate / name)
            return self._begin(job, self._chosen(counting.spec, only))
        except BaseException:
            _remove(job)
            raise

    def skipped(self, gate: str, because: str) -> Verdict:
        """The verdict of a gate after one that did not pass."""
        self.warm_up()
        # Found among the judge's files, which only then can be imported.
        from terms.reasons import Reason
        from terms.verdict import SKIPPED

        reason = Reason.EARLIER_GATE.value
        return {"gate": gate, "verdict": SKIPPED, "reason": reason, "summary": because}

    def _laid_out(self, *parts: str) -> Path:
        """A directory for a judge, with the files of parts of the input root; the last one wins."""
        job = self._job()
        there = [self._root / part for part in parts if (self._root / part).is_dir()]
        paths = {path.name: path for part in there for path in part.iterdir()}
        for name, path in paths.items():
            (job / name).symlink_to(path)
        return job

    def _begin(self, job: Path, spec: Mapping[str, Any]) -> Job:
        """Start a judge in ``job``."""
        (job / "spec.json").write_text(json.dumps(spec))
        stderr = job / "stderr"
        kept = _device_variables(str(spec["platform"]))
        return Job(fork(lambda: _run_gate(job, stderr, kept)), job, stderr)

    def _spec(self, gate: str, only: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        spec = self._order.check.specs["correctness" if gate == SMOKE else gate]
        policy = {**spec["policy"], **(SMOKE_POLICY if gate == SMOKE else {}), **changes}
        chosen = self._chosen({**spec, "policy": policy}, only)
        return {**chosen, "configs": chosen["configs"][: 1 if gate == SMOKE else None]}

    def _chosen(self, spec: Mapping[str, Any], only: str) -> dict[str, Any]:
        """The specification for configs whose name contains ``only``, with this session's salt."""
        configs = [config for config in spec["configs"] if only in config["name"]]
        if not configs:
            known = ", ".join(config["name"] for config in spec["configs"])
            raise ValueError(f"unknown config '{only}'; configs: {known}")
        return {**spec, "salt": self._salt, "configs": configs}

    def _job(self) -> Path:
        self._count += 1
        job = self._scratch / str(self._count)
        (job / "out").mkdir(parents=True)
        return job


def _remove(job: Path) -> None:
    shutil.rmtree(job, ignore_errors=True)


def _execute(argv: Sequence[str], stderr: int) -> int:
    os.dup2(stderr, 2)
    os.execvpe(argv[0], list(argv), _ENVIRONMENT)  # noqa: S606 - no shell, on purpose


def _device_variables(platform: str) -> tuple[str, ...]:
    """The variables of the session that its judges need; the platform names its own."""
    if platform == "cpu":
        return _OF_THE_DEVICE
    told = importlib.import_module("base.device_platform").device_platform(platform)
    return (*_OF_THE_DEVICE, *told.variables)


def _run_gate(job: Path, stderr: Path, kept: Sequence[str]) -> None:
    """In a fork: what ``python tools/gate.py spec.json`` does. Leaves by SystemExit.

    ``kept`` are the variables that the judge gets of this process's environment.
    """
    os.setsid()
    os.chdir(job)
    log = os.open(stderr, os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(log, 2)
    device = {name: os.environ[name] for name in kept if name in os.environ}
    os.environ.clear()
    os.environ.update({**_ENVIRONMENT, **device})
    gate = importlib.import_module("gate")
    sys.exit(gate.main(["spec.json"]))
