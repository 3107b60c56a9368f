"""kabuild from Python: judge a solution, or thousands of them, and get values back.

    import kabuild

    done = kabuild.evaluate("//tasks/hip2hip/softmax", Path("my.hip"), gates=("compile", "perf"))
    done.passed, done.speedup, done["perf"].reason

    with kabuild.Evaluator(platform="cpu", jobs=2) as evaluator:      # keeps interpreters warm
        for done in evaluator.map("//tasks/hip2hip/softmax", sources):  # in the order given
            reward = done.speedup or 0.0

The pipeline, store and keys are those of the command line: what one has judged is cached for the
other.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Self, TypedDict, Unpack

from kabuild.base.errors import KabuildError, Reason, UsageError
from kabuild.base.fs import is_inside
from kabuild.base.suggest import suggest
from kabuild.base.umask import sparing_owner
from kabuild.builder import Builder
from kabuild.execution.host import cpus
from kabuild.given import check_names, check_numbers, check_types, said
from kabuild.loading.platform_index import PlatformIndex
from kabuild.loading.request import Request
from kabuild.model.event import Event
from kabuild.model.gate_result import GateResult
from kabuild.model.label import Label
from kabuild.model.result import Outcome
from kabuild.model.task_result import TaskResult
from kabuild.pipeline import Summary
from kabuild.sandbox import Spawner
from kabuild.store import Store

Solution = Path | str | Mapping[str, str]
"""A file or directory (``Path``, from the workspace), the kernel's text, or texts by name.

A text is never used as a path, because it may come from an untrusted agent.
"""


class _Agent(Enum):
    """Stands for a solution that was left out; None does not, as a caller may have lost one."""

    OWN = "that of the workspace's agent"


_AHEAD = 4
"""Items per job that are read ahead from an iterable, which may be endless."""


class Options(TypedDict, total=False):
    """What ``Evaluator`` and ``evaluate`` take by name, as the flags of ``kabuild test``.

    An option that is not given, or is None, is decided by the workspace, or else by kabuild.

    Attributes:
        platform: ``NAME`` or ``NAME:ARCH``, such as ``cpu``.
        devices: numbers of the devices to use; empty means all of one model.
        agent: a name or label; its solution is judged if none is given.
        policy: the scoring policy.
        samples: the number of drawn configs on which the gate admission tries kernels.
        salt_file: the file with the salt of unseen configs.
        read_cached_gates: False judges again what was judged before.
        fresh: True judges again the gates that are asked for.
        hermetic: False runs without sandboxes; such verdicts prove nothing.
        keep_sandboxes: True keeps the directories of failed actions.
        locked: True refuses toolchains that differ from the lock.
        fetch: False never downloads a pinned toolchain.
    """

    platform: str | None
    devices: tuple[int, ...]
    agent: str | None
    policy: str | None
    samples: int | None
    salt_file: Path | None
    read_cached_gates: bool
    fresh: bool
    hermetic: bool
    keep_sandboxes: bool
    locked: bool
    fetch: bool


class InfraFailureError(Exception):
    """The machine failed, and nothing was judged. The text says how."""


class BrokenTaskError(Exception):
    """The task is wrong, and nothing was judged. The text names the file and the line.

    Its ``reference.py`` fails, or its own kernel does not compile; the solution is not at fault.
    """


@dataclass(frozen=True)
class Evaluation(TaskResult):
    """The result of one solution: a ``TaskResult``, with its cost on this machine.

    Attributes:
        seconds: wall time on this machine.
        error: why this item of ``Evaluator.map`` could not be judged. It then has no gates and did
            not pass; asking for a gate raises the error.
    """

    seconds: float = field(default=0.0, compare=False)
    error: Exception | None = field(default=None, compare=False)

    def __getitem__(self, gate: str) -> GateResult:
        if self.error is not None:
            raise self.error
        return self.gates[gate]


class Evaluator:
    """Judges solutions in one workspace; may be used from several threads.

    ``jobs`` evaluations run at a time, each on one CPU; measurements exclude each other on
    their device. Raises TypeError for an unknown option, and KabuildError for a wrong value.
    """

    def __init__(
        self, workspace: Path | str = ".", *, jobs: int | None = None, **options: Unpack[Options]
    ) -> None:
        _check_known(options, "jobs")
        given = {name: value for name, value in options.items() if value is not None}
        check_types(Options, given)
        self._request = Request(patterns=(), cwd=_directory(workspace), jobs=1)
        self._request = replace(self._request, **given)  # type: ignore[arg-type]  # just checked
        check_numbers(replace(self._request, jobs=jobs))
        check_names(self._request)
        if self._request.platform is not None:
            PlatformIndex.around(self._request.cwd).parse(self._request.platform)
        self._jobs = jobs or cpus()
        self._stop = stop = threading.Event()
        with sparing_owner():
            self._store = Store.open()
        self._spawner = Spawner()
        self._builder = Builder(
            self._store, _Silence(), lambda: nullcontext(stop), spawner=self._spawner
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._spawner.close()
        self._store.close()

    def evaluate(
        self, task: str, solution: Solution | _Agent = _Agent.OWN, *, gates: Sequence[str] = ()
    ) -> Evaluation:
        """Judge one solution of ``task``, or the agent's if it is left out; None is refused.

        Raises KabuildError for an invalid request or after the end of the ``with`` statement,
        BrokenTaskError for a broken task, and InfraFailureError if the machine failed.
        """
        self._check_open()
        try:
            with sparing_owner():
                return self._evaluated(task, solution, gates)
        except (KabuildError, BrokenTaskError, InfraFailureError, OSError):
            self._check_open()  # what an end in the meantime took away is nobody's mistake
            raise

    def _evaluated(
        self, task: str, solution: Solution | _Agent, gates: Sequence[str]
    ) -> Evaluation:
        _check_task(task)
        request = replace(
            self._request,
            patterns=(task,),
            solution=self._path_of(solution),
            gates=_names_of(gates),
        )
        return _evaluation(self._builder.run(request))

    def map(
        self, task: str, solutions: Iterable[Solution], *, gates: Sequence[str] = ()
    ) -> Iterator[Evaluation]:
        """Judge many solutions of one task, ``jobs`` at a time; results in the order given.

        An item that cannot be judged also gets a result, with its ``error``; the others go on.
        An error of the iterable itself is raised after the results of what came before it.
        """
        _check_task(task)
        _check_many(solutions)
        self._check_open()

        def one(solution: Solution) -> Evaluation:
            try:
                return self.evaluate(task, solution, gates=gates)
            except (KabuildError, BrokenTaskError, InfraFailureError, OSError) as error:
                return Evaluation(_label(task), {}, error=error)

        def submitted(pool: ThreadPoolExecutor) -> Iterator[Future[Evaluation]]:
            try:
                for solution in solutions:
                    yield pool.submit(one, solution)
            except Exception as error:  # noqa: BLE001 - the caller's own, raised in its place
                failed: Future[Evaluation] = Future()
                failed.set_exception(error)
                yield failed

        with ThreadPoolExecutor(self._jobs, "evaluation") as pool:
            ahead = submitted(pool)
            waiting = deque(islice(ahead, self._jobs * _AHEAD))
            try:
                while waiting:
                    done = waiting.popleft().result()
                    waiting.extend(islice(ahead, 1))
                    yield done
            finally:
                for future in waiting:  # whoever leaves early waits for no more
                    future.cancel()

    def _check_open(self) -> None:
        if self._stop.is_set():
            what = "this Evaluator is closed: its 'with' statement has ended"
            raise UsageError(Reason.BAD_PATTERN, what)

    def _path_of(self, solution: Solution | _Agent) -> Path | None:
        if solution is _Agent.OWN:
            return None
        if isinstance(solution, Path):
            return solution
        if isinstance(solution, str):
            return self._written({"kernel": solution}) / "kernel"
        if isinstance(solution, Mapping) and solution:
            return self._written(solution)
        raise UsageError(
            Reason.BAD_SOLUTION,
            f"a solution must be a str, a Path or a mapping of names to str, not {said(solution)}",
        )

    def _written(self, files: Mapping[str, str]) -> Path:
        folder = self._store.scratch.path("solution")
        for name, text in _items(files):
            if not isinstance(name, str) or not is_inside(name) or not Path(name).name:
                what = f"{said(name)} is not a path inside a solution"
                raise UsageError(Reason.BAD_SOLUTION, what)
            try:
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(str.encode(text))  # also of subclasses, without their methods
            except (OSError, UnicodeEncodeError, TypeError) as error:
                what = f"'{name}' of a solution cannot be written: {error}"
                raise UsageError(Reason.BAD_SOLUTION, what) from None
        return folder


def evaluate(
    task: str,
    solution: Solution | _Agent = _Agent.OWN,
    *,
    gates: Sequence[str] = (),
    workspace: Path | str = ".",
    **options: Unpack[Options],
) -> Evaluation:
    """Judge one solution, or if it is left out the agent's; ``Evaluator`` is faster for many.

    Raises TypeError for an unknown option, KabuildError for an invalid request, BrokenTaskError
    for a broken task, and InfraFailureError if the machine failed.
    """
    with Evaluator(workspace, **options) as evaluator:
        return evaluator.evaluate(task, solution, gates=gates)


def _check_known(options: Options, *more: str) -> None:
    for name in options.keys() - Options.__annotations__.keys():
        known = [*Options.__annotations__, *more]
        hint = suggest(name, known) or f"known: {', '.join(known)}"
        raise TypeError(f"unknown option '{name}'; {hint}")


def _check_task(task: object) -> None:
    if not isinstance(task, str):
        raise UsageError(Reason.BAD_PATTERN, f"a task is given by its label, not {said(task)}")


def _names_of(gates: object) -> tuple[str, ...]:
    """A text is also a sequence of texts, of one character each: never what was meant."""
    names = tuple(gates) if isinstance(gates, Iterable) and not isinstance(gates, str) else (gates,)
    if isinstance(gates, str | bytes) or not all(isinstance(name, str) for name in names):
        what = f'gates are names, such as ("compile", "perf"), not {said(gates)}'
        raise UsageError(Reason.UNKNOWN_GATE, what)
    return names


def _check_many(solutions: object) -> None:
    """Refuse one text or mapping, whose letters or keys would be taken for solutions."""
    one = isinstance(solutions, str | bytes | Mapping)
    if one or not isinstance(solutions, Iterable):
        what = f"map takes solutions, such as a list of strings, not {said(solutions)}"
        raise UsageError(Reason.BAD_SOLUTION, what)


def _items(files: Mapping[str, str]) -> tuple[tuple[object, str], ...]:
    """The items of a mapping, whose class may be anybody's."""
    try:
        return tuple((name, text) for name, text in files.items())
    except Exception as error:  # noqa: BLE001 - foreign code
        what = f"the texts of a solution cannot be read: {type(error).__name__}: {error}"
        raise UsageError(Reason.BAD_SOLUTION, what) from None


def _directory(workspace: object) -> Path:
    """The directory that was given. Raises UsageError for anything else."""
    try:
        path = Path(os.path.realpath(os.fspath(workspace)))  # type: ignore[call-overload]
        if path.is_dir() and workspace != "":
            return path
        why = "no such directory"
    except TypeError:
        why = "expected a path"
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8, or with a null byte"
    raise UsageError(Reason.NO_WORKSPACE, f"workspace {said(workspace)}: {why}")


class _Silence:
    """Ignores all events: the returned values say everything."""

    def emit(self, event: Event) -> None:
        """Forget ``event``."""


def _evaluation(summary: Summary) -> Evaluation:
    if len(summary.table) != 1:
        labels = ", ".join(result.label.short for result in summary.table)
        raise UsageError(
            Reason.BAD_PATTERN, f"an evaluation takes one task, but these match: {labels}"
        )
    (result,) = summary.table
    _check_judged(summary, result)
    return Evaluation(**vars(result), seconds=summary.seconds)


def _check_judged(summary: Summary, result: TaskResult) -> None:
    """A gate without a verdict is a failure of the machine or of the task."""
    for item in summary.settled.values():
        if item.outcome is Outcome.FAILED:
            raise BrokenTaskError(item.account)
        if item.outcome is Outcome.INFRA:
            raise InfraFailureError(item.account)
    for gate in result.gates.values():
        if gate.verdict is None:
            raise InfraFailureError(f"{gate.label}: {gate.word}")


def _label(task: str) -> Label:
    """The requested label, whether such a task exists or not."""
    try:
        return Label.parse(task, package="")
    except UsageError:
        return Label("", task)
