"""Calls a task's ``reference.py`` under a time limit, and reports where it fails."""

from __future__ import annotations

import difflib
import importlib.util
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NoReturn

import torch
from base.task_watch import blame, end_judge, running

from truth.keeper import Keeper
from truth.refused_calls import RefusedError, refused

CALL_SECONDS = 120.0
"""The time limit of one call, and of the import."""

CAREFUL_CALLS = 8
"""How many first calls of each function are followed by a check of the whole process."""

_LONGEST = 1000
"""The most characters of an exception's text that are shown."""


class TaskFault(Exception):  # noqa: N818 (the task's fault, beside the candidate's and machine's)
    """The task is broken: its ``reference.py`` fails or does not do what it declares."""


class TaskCode:
    """The module at ``path``, and calls of its functions.

    Messages begin with the given path, and the line if known.
    """

    def __init__(self, path: str, seconds: float = CALL_SECONDS) -> None:
        self._path = path
        self._full = os.path.abspath(path)  # noqa: PTH100 - as importlib makes it
        self._seconds = seconds
        self._named: dict[int, str] = {}
        self._calls: Counter[str] = Counter()
        self._keeper = Keeper()
        self._module = self._load()

    def find(self, name: str) -> Callable[..., Any] | None:
        """The function ``name``; None if there is none."""
        function: Callable[..., Any] | None = vars(self._module).get(name)
        if not callable(function):
            return None
        self._named[id(function)] = name
        return function

    def function(self, name: str) -> Callable[..., Any]:
        """The function ``name``. Raises TaskFault if there is none."""
        function = self.find(name)
        if function is None:
            line, hint = self._meant(name)
            raise TaskFault(f"{self._path}:{line}: no function '{name}'{hint}")
        return function

    def _meant(self, name: str) -> tuple[int, str]:
        """The line of a similarly named function, and a hint; else the name's or the last line."""
        functions = {
            key: value.__code__.co_firstlineno
            for key, value in vars(self._module).items()
            if isinstance(value, FunctionType) and value.__code__.co_filename == self._full
        }
        for near in difflib.get_close_matches(name, functions, 1):
            return functions[near], f"; did you mean '{near}'?"
        return self._line_of(name) or max(1, len(self._lines())), ""

    def _lines(self) -> list[str]:
        try:
            return Path(self._full).read_text(errors="replace").splitlines()
        except OSError:  # it may have deleted itself
            return []

    def _line_of(self, name: str) -> int:
        """The first line that begins with a name, or defines it; 0 for none."""
        named = re.compile(rf"\s*((async\s+)?def\s+|class\s+)?{re.escape(name)}\b")
        lines = enumerate(self._lines(), 1)
        return next((number for number, line in lines if named.match(line)), 0)

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call a function and return its result. Raises TaskFault and both out-of-memory errors."""
        line = self._line(function)
        return self._call(f"{self.name(function)}()", line, function, *arguments, **named)

    def attempt(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function that may fail on a candidate's results without fault of the task.

        Passes on its exceptions, and raises TaskFault for failures that no result explains.
        """
        what, line = f"{self.name(function)}()", self._line(function)
        try:
            return self._run(what, line, function, *arguments)
        except RefusedError as error:
            raise TaskFault(f"{self._place(error, line)}: {what} {error}") from None
        except _EndError as error:
            said = f"{what} ended its process ({error})"
            raise TaskFault(f"{self._place(error, line)}: {said}") from error

    def refuse(self, function: Callable[..., Any], what: str) -> NoReturn:
        """Raise TaskFault for a result that differs from the declaration."""
        raise TaskFault(f"{self._path}{self._line(function)}: {what}")

    def name(self, function: Callable[..., Any]) -> str:
        """The task's name for a function, which may be an object without a name."""
        own = function.__name__ if isinstance(function, FunctionType) else "a function"
        return self._named.get(id(function), own)

    def _line(self, function: Callable[..., Any]) -> str:
        """The line of a function, as ``:7``; if decorated, of the task's own function inside."""
        inner: Any = function
        while isinstance(inner, FunctionType):
            if inner.__code__.co_filename == self._full:
                return f":{inner.__code__.co_firstlineno}"
            inner = getattr(inner, "__wrapped__", None)
        found = self._line_of(self.name(function))
        return f":{found}" if found else ""

    def _load(self) -> ModuleType:
        specification = importlib.util.spec_from_file_location(
            "kabuild_task_reference", Path(self._full)
        )
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        self._call("the import", ":1", specification.loader.exec_module, module)
        return module

    def _call(
        self, what: str, line: str, function: Callable[..., Any], *arguments: Any, **named: Any
    ) -> Any:
        """Call a function that begins at ``line``, given as ``:7``."""
        try:
            return self._run(what, line, function, *arguments, **named)
        except torch.OutOfMemoryError:
            raise  # the machine's fault, not the task's
        except TaskFault:
            raise
        except LateError as error:
            said = f"{what} did not end within {self._seconds:g} s"
            raise TaskFault(f"{self._place(error, line)}: {said}") from None
        except RefusedError as error:
            raise TaskFault(f"{self._place(error, line)}: {what} {error}") from None
        except _EndError as error:
            said = f"{what} ended its process ({error})"
            raise TaskFault(f"{self._place(error, line)}: {said}") from None
        except BaseException as error:  # also those that end programs: it is the task's code
            if isinstance(error, MemoryError) and not self._is_innermost(error):
                raise  # likewise
            said = f"{what} raised {self.told(error)}"
            raise TaskFault(f"{self._place(error, line)}: {said}") from None

    def _run(
        self, what: str, line: str, function: Callable[..., Any], *arguments: Any, **named: Any
    ) -> Any:
        """Call a function that must leave the process as it was. Passes on its exceptions."""
        place, process = f"{self._path}{line}: {what}", os.getpid()
        self._calls[place] += 1
        is_main = threading.current_thread() is threading.main_thread()
        careful = not is_main or self._calls[place] <= CAREFUL_CALLS
        kept = self._keeper.call(place, careful=careful)
        try:
            with running(place, self._seconds), _endless(), _limited(self._seconds):
                with refused(), kept:
                    made = function(*arguments, **named)
                if os.getpid() != process:
                    end_judge(lambda: 1)  # a forked copy; the judge itself goes on elsewhere
        finally:
            if kept.crippled:
                blame(kept.complaint)
        if kept.complaint:
            raise TaskFault(kept.complaint)
        return made

    def told(self, error: BaseException) -> str:
        """An exception as readable text, even if its own text fails."""
        name = type(error).__name__
        if isinstance(error, LateError):
            return f"it did not end within {self._seconds:g} s"
        try:
            with _limited(self._seconds):
                text = str(error.msg if isinstance(error, SyntaxError) else error)
        except BaseException as other:  # noqa: BLE001 - the task's code once more
            return f"{name}, whose text raised {type(other).__name__}"
        shown = "".join(c if c.isprintable() else " " for c in text[:_LONGEST]).strip()
        more = "..." if len(text) > _LONGEST else ""
        return f"{name}: {shown}{more}".rstrip(": ")

    def _is_innermost(self, error: BaseException) -> bool:
        """Whether the task's own file raised it, or asked for too much in one expression."""
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        return trace is not None and trace.tb_frame.f_code.co_filename == self._full

    def _place(self, error: BaseException, line: str) -> str:
        """Path and line of the task's innermost frame; else the function's ``line``."""
        if isinstance(error, SyntaxError) and error.filename in {self._full, None, "<unknown>"}:
            return f"{self._path}:{error.lineno or 1}"
        place, trace = f"{self._path}{line}", error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self._full:
                place = f"{self._path}:{trace.tb_lineno}"
            trace = trace.tb_next
        return place


class LateError(BaseException):
    """Raised inside a call that takes too long. The task's own ``except`` must not catch it."""


class _EndError(BaseException):
    """Raised where the task's code would end the process."""


def _leave(status: int) -> NoReturn:
    raise _EndError(f"exit code {status}")


def _abort() -> NoReturn:
    raise _EndError("SIGABRT")


@contextmanager
def _endless() -> Iterator[None]:
    """Raise _EndError at the line that ends the process, if it calls a Python function for it."""

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = os._exit, os.abort
    os._exit, os.abort = _leave, _abort
    try:
        yield
    finally:
        os._exit, os.abort = before


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise LateError in the body after ``seconds``, and every second from then on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: object) -> None:
        raise LateError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
