"""One agent at one task: ``session.py agent.json --toolchain=NAME=DIRECTORY ...``.

Lays out what the agent sees, starts the checks, runs the agent in its own sandbox, and takes
back its editable files. Writes ``out/solution``, ``out/agent.json``, ``out/transcript.jsonl`` and
``out/calls.jsonl``. Exits with 0 whatever the agent did, and with 3 if the machine failed or the
agent could not run, with one line on stderr: then there is no result.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import adapter
import checks
import desk
import hand_in
import proxy
from adapter import Adapter, Captured, Report, State, Usage
from bench import Bench
from contained import Command, Contained, Ended
from desk import Desk
from hand_in import HandIn
from order import Order, fill, read_order

NO_RESULT = 3
_OUT = Path("out")
_WRITABLE, _PRIVATE = Path("/dev/shm/agent"), Path("/tmp/session")  # noqa: S108 - the sandbox's
_VERSION_SECONDS = 60.0
_TRANSCRIPT_BYTES = 64 << 20
_LISTEN_FD = 3


class NoResultError(Exception):
    """The agent could not run; the set-up is at fault."""


def main(arguments: Sequence[str]) -> int:
    """Run one session."""
    path, *rest = arguments
    homes = [argument.removeprefix("--toolchain=") for argument in rest]
    order = read_order(Path(path), homes)
    root = Path.cwd()
    made = desk.lay_out(root, _WRITABLE, _PRIVATE, order.kernel)
    session = Session(order, root, made)
    try:
        report, ended, version = session.run()
        solution = hand_in.take(made.workspace, [order.kernel], made.read_only())
        session.write(report, ended, version, solution)
    except (NoResultError, OSError) as error:
        print(f"session.py: {' '.join(str(error).split())}", file=sys.stderr)
        return NO_RESULT
    finally:
        session.end_helpers()
    return 0


class Session:
    """A session whose directories are laid out. ``root`` is the input root."""

    def __init__(self, order: Order, root: Path, made: Desk) -> None:
        self._order = order
        self._root = root
        self._desk = made
        self._calls = _PRIVATE / "calls.jsonl"
        self._helpers: list[int] = []
        self._watched: dict[int, Callable[[bytes], None]] = {}
        self._outages: list[proxy.Outage] = []
        self._adapter: Adapter = adapter.load(order.agent.adapter, root / "agent")
        template = (root / "prompt.md").read_text()
        self._prompt = self._fill_prompt(template)
        self._variables = desk.variables(order, self._prompt)

    def run(self) -> tuple[Report, Ended, str]:
        """Run the agent: its adapter's report, our observations, and its version.

        Raises NoResultError if it could not run.
        """
        agent = self._order.agent
        view = self._desk.view(agent.network, self._journal() if agent.resumes else None)
        (self._desk.kit / "prompt.md").write_text(self._prompt)
        self._start_checks()
        version = self._version()
        self._adapter.prepare(
            adapter.Setup(
                self._desk.home,
                self._desk.workspace,
                desk.HOME,
                desk.WORKSPACE,
                agent.model,
                self._variables,
            )
        )
        listeners = (
            *(("service",) if agent.service else ()),
            *(("proxy",) if agent.network == "proxy" else ()),
        )
        stdin = f"{desk.KIT}/prompt.md" if agent.prompt_by == "stdin" else "/dev/null"
        command = self._command(agent.command, stdin, listeners)
        running = Contained(command, view, agent.seconds, self._order.memory)
        for name, listening in zip(listeners, running.sockets, strict=True):
            self._serve(name, listening, running)
        budget = _Budget(self._order, self._adapter, running)
        ended = running.wait(budget.follow, self._watched)
        if ended.problem:
            raise NoResultError(ended.problem)
        for outage in self._outages:
            if not outage.ever:
                raise NoResultError(str(outage))
        report = self._report(ended, budget)
        if report.state is State.UNAVAILABLE:
            why = "; ".join((*map(str, self._outages[-1:]), report.message))
            raise NoResultError(f"{self._order.name} is not available: {why}")
        return report, ended, version

    def write(self, report: Report, ended: Ended, version: str, solution: HandIn) -> None:
        """Write the outputs of the action."""
        for path, data in solution.files.items():
            target = _OUT / "solution" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        calls = self._calls.read_bytes() if self._calls.exists() else b""
        (_OUT / "calls.jsonl").write_bytes(calls)
        checks = map(_as_entry, adapter.json_objects(calls))
        complaints = ended.stderr.decode(errors="replace")
        entries = (
            {"role": "user", "text": self._prompt},
            *report.transcript,
            *([{"role": "stderr", "text": complaints}] if complaints else []),
            *checks,
        )
        (_OUT / "transcript.jsonl").write_bytes(_lines(entries, _TRANSCRIPT_BYTES))
        original = (self._root / "desk" / self._order.kernel).read_bytes()
        result = {
            "schema": 1,
            "agent": self._order.name,
            "model": self._order.agent.model,
            "version": version,
            "trial": self._order.trial,
            "run": self._order.run,
            "state": report.state.value,
            "message": report.message,
            "exit_code": ended.exit_code,
            "limit": ended.limit,
            "seconds": round(ended.seconds, 3),
            "usage": asdict(report.usage),
            "skipped_events": report.skipped,
            **({"figures": dict(report.figures)} if report.figures else {}),
            "checks": len(calls.splitlines()),
            "solution": {
                "digest": solution.digest,
                "changed": solution.files[self._order.kernel] != original,
                "refused": dict(solution.refused),
                "dropped": list(solution.dropped),
                "dropped_count": solution.dropped_count,
            },
        }
        text = json.dumps(result, sort_keys=True, ensure_ascii=False)
        (_OUT / "agent.json").write_bytes(text.encode(errors="backslashreplace") + b"\n")

    def end_helpers(self) -> None:
        """End the server of the checks, the service and the proxy."""
        for pid in self._helpers:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)

    def _fill_prompt(self, template: str) -> str:
        agent = self._order.agent
        brief = (self._root / "desk" / "BRIEF.md").read_text()
        limits = {"seconds": f"{agent.seconds:g}", "turns": str(agent.turns or "any number of")}
        return fill(template, {"brief": brief, "kernel": self._order.kernel, **limits})

    def _journal(self) -> Path:
        """The journal of an interrupted run of this trial, or a temporary file."""
        kept = Path(desk.JOURNAL)
        if kept.exists():
            return kept
        (_PRIVATE / "journal").touch()
        return _PRIVATE / "journal"

    def _start_checks(self) -> None:
        scratch = _PRIVATE / "checks"
        scratch.mkdir()
        listening = checks.listen(self._desk.socket)
        bench = Bench(self._order, self._root, scratch)
        self._helpers.append(checks.start(listening, bench, self._calls))
        listening.close()

    def _command(
        self, argv: Sequence[str], stdin: str = "/dev/null", listeners: tuple[str, ...] = ()
    ) -> Command:
        names = self._order.agent.secrets
        secrets = {name: os.environ[name] for name in names if name in os.environ}
        environment = partial(_environment, self._order, secrets)
        return Command(argv, self._variables, environment, stdin, listeners)

    def _version(self) -> str:
        """The version of the command line. Raises NoResultError if it is not the declared one."""
        agent = self._order.agent
        if not agent.version_command:
            return ""
        command = self._command(agent.version_command)
        view = self._desk.view("none")
        ended = Contained(command, view, _VERSION_SECONDS, self._order.memory).wait()
        text = (ended.stdout + ended.stderr).decode(errors="replace").strip()
        silence = f"no output in {_VERSION_SECONDS:g} s" if ended.limit == "wall" else "no output"
        # On success the version comes first; on failure the error comes last.
        said = text.splitlines()[0 if ended.exit_code == 0 else -1] if text else ""
        said = said or ended.problem or silence
        if ended.exit_code != 0 or agent.version not in text:
            wanted = f"version {agent.version}" if agent.version else "its version"
            raise NoResultError(f"{self._order.name} should print {wanted}, not: {said}")
        return said

    def _serve(self, name: str, listening: socket.socket, running: Contained) -> None:
        agent = self._order.agent
        if name == "proxy":
            told, telling = os.pipe()
            self._helpers.append(proxy.start(listening, agent.hosts, telling))
            os.close(telling)
            self._watched[told] = partial(self._hear, proxy.Outages(), running)
        else:
            known = {**self._variables, "files": str(self._desk.kit / "agent")}
            argv = [fill(argument, known) for argument in agent.service]
            self._helpers.append(_start_service(argv, listening))
        listening.close()

    def _hear(self, outages: proxy.Outages, running: Contained, data: bytes) -> None:
        """Note unreachable hosts, and end a run whose model was never reached."""
        for outage in outages.feed(data):
            self._outages.append(outage)
            if not outage.ever:
                running.stop()

    def _report(self, ended: Ended, budget: _Budget) -> Report:
        state, message = State.FINISHED if ended.exit_code == 0 else State.FAILED, ""
        if budget.spent:
            state, message = State.BUDGET, budget.spent
        elif ended.limit == "wall":
            state = State.TIMED_OUT
            message = f"it was stopped after {self._order.agent.seconds:g} s"
        elif ended.limit:
            message = f"it was stopped at its limit of {ended.limit}"
        captured = Captured(
            ended.stdout,
            ended.stderr,
            ended.exit_code,
            state,
            ended.seconds,
            self._desk.home,
            self._desk.workspace,
        )
        try:
            report = self._adapter.read(captured)
        except adapter.UNREADABLE as error:
            # An adapter reads the agent's files, which may hold anything.
            said = f"its output cannot be read: {type(error).__name__}: {error}"
            printed = adapter.load("plain").read(captured).transcript
            ended_as = State.FAILED if state is State.FINISHED else state
            return Report(ended_as, budget.usage, printed, said)
        if report.state is State.UNAVAILABLE:
            return report
        stopped = state in {State.BUDGET, State.TIMED_OUT}
        usage = report.usage.plausible()
        usage = usage if usage != Usage() else budget.usage
        if stopped:
            return replace(report, state=state, usage=usage, message=message)
        message = message or report.message
        if report.state is State.FAILED and not message:
            message = _leaving(ended.exit_code)
        return replace(report, usage=usage, message=message)


class _Budget:
    """Follows an agent's usage by its own account, and stops it at the end of a budget.

    ``spent`` names the exhausted budget, or is empty.
    """

    def __init__(self, order: Order, reader: Adapter, running: Contained) -> None:
        self.spent = ""
        self.usage = Usage()
        self._order = order
        self._meter = reader.meter()
        self._running = running

    def follow(self, line: bytes) -> None:
        """Read another line of stdout."""
        with contextlib.suppress(*adapter.UNREADABLE):
            if told := self._meter.feed(line):
                self.usage = told.plausible()
        if not self.spent and (spent := self._exceeded()):
            self.spent = spent
            self._running.stop()

    def _exceeded(self) -> str:
        agent, usage = self._order.agent, self.usage
        budgets: Mapping[str, tuple[float | None, float]] = {
            "turns": (usage.turns, agent.turns),
            "tokens": (usage.tokens, agent.tokens),
            "dollars": (usage.dollars, agent.dollars),
        }
        for name, (used, most) in budgets.items():
            if most and used is not None and used > most:
                return f"it used {used:g} {name}, at most {most:g} are allowed"
        return ""


def _leaving(code: int | None) -> str:
    """How it failed, if it does not say so itself; 128 + N is signal N."""
    if code is None:
        return "it was killed"
    killers = {128 + number: f" ({number.name})" for number in signal.Signals}
    return f"it ended with exit code {code}{killers.get(code, '')}"


def _as_entry(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """A check as an entry of the transcript."""
    said = [f"{verdict['gate']}: {verdict['verdict']}" for verdict in call["verdicts"]]
    return {"role": "check", "text": call["error"] or "; ".join(said), **call}


def _lines(entries: Iterable[Mapping[str, Any]], most: int) -> bytes:
    """The entries as JSON lines, up to ``most`` bytes."""
    lines, size = [], 0
    for entry in entries:
        line = json.dumps(entry, ensure_ascii=False).encode(errors="backslashreplace") + b"\n"
        size += len(line)
        if size > most:
            break
        lines.append(line)
    return b"".join(lines)


def _environment(
    order: Order, secrets: Mapping[str, str], known: Mapping[str, str]
) -> Mapping[str, str]:
    return desk.environment(order, known, secrets)


def _start_service(argv: Sequence[str], listening: socket.socket) -> int:
    """Start the program that serves the agent's loopback, with the socket as descriptor 3."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            os.dup2(listening.fileno(), _LISTEN_FD)
            environment: dict[str, Any] = {"PATH": "/usr/bin:/bin", "HOME": "/tmp"}  # noqa: S108
            environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
            os.execvpe(argv[0], list(argv), environment)  # noqa: S606 - no shell, on purpose
        finally:
            os._exit(127)
    return pid


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
