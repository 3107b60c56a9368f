"""An engine of remote execution in this process: stages actions, starts the program, takes outputs.

It reads and writes messages with protobuf, and knows nothing of kabuild: any program will do. What
goes wrong in it, a test writes down.
"""

from __future__ import annotations

import queue
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from tests.testkit.reapi import message_class, parse
from tests.testkit.reapi_server import ReapiServer

QUEUED, EXECUTING, COMPLETED = 2, 3, 4
_END: None = None


class Job:
    """One execution: all that was said of it, for whoever comes to listen."""

    def __init__(self, name: str, action: str) -> None:
        self.name = name
        self.action = action
        self.said: list[bytes] = []
        self.listeners: list[queue.SimpleQueue[bytes | None]] = []
        self.over = False
        self.process: subprocess.Popen[bytes] | None = None
        self.cancelled = False
        self.guard = threading.Lock()

    def say(self, message: bytes, *, last: bool = False) -> None:
        with self.guard:
            self.said.append(message)
            self.over = last
            for listener in self.listeners:
                listener.put(message)

    def listen(self) -> Iterator[bytes]:
        heard: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        with self.guard:
            known, over = [*self.said], self.over
            self.listeners.append(heard)
        yield from known[-1:]
        while not over:
            message = heard.get()
            if message is None:
                return
            yield message
            with self.guard:
                over = self.over and heard.empty()


class StagingEngine:
    """Runs each action at once in a thread of its own, in a directory below ``root``.

    Attributes:
        ran: the actions that ran, by hash, in order.
        queued: while set, actions stay in the queue.
        refuse: called with the number of an execution; a status code and a message end it.
        before: called with the directory of an action before its program starts.
        after: called with a job and its result before that is stored.
        properties: those of the actions that ran.
    """

    def __init__(self, server: ReapiServer, root: Path) -> None:
        self.server = server
        self.root = root
        self.ran: list[str] = []
        self.properties: list[dict[str, str]] = []
        self.queued = threading.Event()
        self.refuse: Callable[[int], tuple[int, str] | None] = lambda _: None
        self.before: Callable[[Path], object] = lambda _: None
        self.after: Callable[[Job, Any], object] = lambda *_: None
        self.jobs: dict[str, Job] = {}
        self._numbers = count()
        server.engine = self

    def execute(self, action: str, *, anew: bool) -> Iterator[bytes]:
        remembered = self.server.results.get(action)
        if remembered is not None and not anew:
            yield _done("cached", remembered, cached=True)
            return
        running = [job for job in self.jobs.values() if job.action == action and not job.over]
        job = running[0] if running and not self._is_alone(action) else self._begin(action)
        yield from job.listen()

    def wait(self, name: str) -> Iterator[bytes] | None:
        return self.jobs[name].listen() if name in self.jobs else None

    def cancel(self, name: str) -> None:
        job = self.jobs[name]
        job.cancelled = True
        self.queued.clear()
        if job.process:
            job.process.kill()

    def hang_up(self) -> None:
        """End all streams, as a server that is killed does, and forget all jobs."""
        jobs, self.jobs = self.jobs, {}
        for job in jobs.values():
            for listener in job.listeners:
                listener.put(_END)

    def cut(self) -> None:
        """End all streams; the jobs go on."""
        for job in self.jobs.values():
            with job.guard:
                listeners, job.listeners = job.listeners, []
            for listener in listeners:
                listener.put(_END)

    def _is_alone(self, action: str) -> bool:
        blob = self.server.blobs.get(action)
        return blob is None or parse("Action", blob).do_not_cache

    def _begin(self, action: str) -> Job:
        number = next(self._numbers)
        job = self.jobs[f"job-{number}"] = Job(f"job-{number}", action)
        threading.Thread(target=self._run, args=(job, number), daemon=True).start()
        return job

    def _run(self, job: Job, number: int) -> None:
        if refused := self.refuse(number):
            job.say(_failed(job.name, *refused), last=True)
            return
        job.say(_staged(job.name, QUEUED))
        while self.queued.is_set() and not job.cancelled:
            self.queued.wait(0.01)
            threading.Event().wait(0.01)
        top = self.root / job.name
        try:
            command = self._stage(job.action, top)
        except KeyError as error:
            what = f"MISSING blobs/{error.args[0]}"
            job.say(_failed(job.name, 9, what), last=True)
            return
        self.ran.append(job.action)
        self.properties.append({p.name: p.value for p in command.platform.properties})
        job.say(_staged(job.name, EXECUTING))
        self.before(top)
        cwd = top / command.working_directory
        job.process = subprocess.Popen(
            [*command.arguments], cwd=cwd, env={}, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
        stderr = job.process.communicate()[1]
        if job.cancelled:
            job.say(_failed(job.name, 1, "cancelled"), last=True)
            return
        result = self._outputs(command, cwd)
        result.exit_code = job.process.returncode
        result.stderr_raw = stderr
        self.after(job, result)
        data = bytes(result.SerializeToString())
        if result.exit_code == 0 and not self._is_alone(job.action):
            self.server.results[job.action] = data
        shutil.rmtree(top)
        job.say(_done(job.name, data, cached=False), last=True)

    def _stage(self, hash_: str, top: Path) -> Any:
        blobs = self.server.blobs
        action = parse("Action", blobs[hash_])
        command = parse("Command", blobs[action.command_digest.hash])
        self._lay_out(action.input_root_digest.hash, top)
        (top / command.working_directory / "out").mkdir(exist_ok=True)
        return command

    def _lay_out(self, hash_: str, place: Path) -> None:
        directory = parse("Directory", self.server.blobs[hash_])
        place.mkdir(parents=True)
        for node in directory.files:
            file = place / node.name
            file.write_bytes(self.server.blobs[node.digest.hash])
            file.chmod(0o755 if node.is_executable else 0o644)
        for node in directory.directories:
            self._lay_out(node.digest.hash, place / node.name)

    def _outputs(self, command: Any, cwd: Path) -> Any:
        result = message_class("WireResult")()
        for name in command.output_paths:
            path = cwd / name
            if path.is_dir():
                tree = message_class("Tree")()
                self._read(path, tree, tree.root)
                digest = self.server.put(bytes(tree.SerializeToString()))
                out = result.output_directories.add(path=name)
                out.tree_digest.hash, out.tree_digest.size_bytes = digest.hash, digest.size
            elif path.exists():
                digest = self.server.put(path.read_bytes())
                out = result.output_files.add(path=name)
                out.digest.hash, out.digest.size_bytes = digest.hash, digest.size
        return result

    def _read(self, place: Path, tree: Any, directory: Any) -> None:
        for path in sorted(place.iterdir()):
            if path.is_dir():
                child = message_class("Directory")()
                self._read(path, tree, child)
                tree.children.append(child)
                digest = self.server.put(bytes(child.SerializeToString(deterministic=True)))
                node = directory.directories.add(name=path.name)
            else:
                digest = self.server.put(path.read_bytes())
                node = directory.files.add(name=path.name)
                node.is_executable = bool(path.stat().st_mode & 0o100)
            node.digest.hash, node.digest.size_bytes = digest.hash, digest.size


def _operation(name: str, stage: int) -> Any:
    operation = message_class("Operation")(name=name)
    about = message_class("ExecuteOperationMetadata")(stage=stage)
    operation.metadata.value = bytes(about.SerializeToString())
    return operation


def _staged(name: str, stage: int) -> bytes:
    return bytes(_operation(name, stage).SerializeToString())


def _done(name: str, result: bytes, *, cached: bool) -> bytes:
    operation = _operation(name, COMPLETED)
    operation.done = True
    answer = message_class("ExecuteResponse")(result=result, cached_result=cached)
    operation.response.value = bytes(answer.SerializeToString())
    return bytes(operation.SerializeToString())


def _failed(name: str, code: int, message: str) -> bytes:
    operation = _operation(name, COMPLETED)
    operation.done = True
    answer = message_class("ExecuteResponse")()
    answer.status.code, answer.status.message = code, message
    operation.response.value = bytes(answer.SerializeToString())
    return bytes(operation.SerializeToString())
