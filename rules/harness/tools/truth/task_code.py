"""Calls of a task's ``reference.py``, with a time limit and the places of failures."""

from __future__ import annotations

import difflib
import importlib.util
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NoReturn

import torch
from base.task_watch import running

CALL_SECONDS = 120.0
"""How long one call may take, and the import."""


class TaskFault(Exception):  # noqa: N818 (the task's fault, beside the candidate's and machine's)
    """The task is broken: its ``reference.py`` fails or does not do what it declares."""


class TaskCode:
    """The module at ``path``, and calls of its functions.

    Messages begin with the given path, and with the line if known.
    """

    def __init__(self, path: str, seconds: float = CALL_SECONDS) -> None:
        self._path = path
        self._full = os.path.abspath(path)  # noqa: PTH100 - as importlib makes it
        self._seconds = seconds
        self._module = self._load()

    def find(self, name: str) -> Callable[..., Any] | None:
        """The function ``name``; None if there is none."""
        function = getattr(self._module, name, None)
        return function if callable(function) else None

    def function(self, name: str) -> Callable[..., Any]:
        """The function ``name``. Raises TaskFault if there is none."""
        function = self.find(name)
        if function is None:
            line, hint = self._meant(name)
            raise TaskFault(f"{self._path}:{line}: no function '{name}'{hint}")
        return function

    def _meant(self, name: str) -> tuple[int, str]:
        """The line of what has the name or a similar one, and a hint; else the last line."""
        lines = Path(self._full).read_text(errors="replace").splitlines()
        functions = {
            key: value.__code__.co_firstlineno
            for key, value in vars(self._module).items()
            if isinstance(value, FunctionType) and value.__code__.co_filename == self._full
        }
        for near in difflib.get_close_matches(name, functions, 1):
            return functions[near], f"; did you mean '{near}'?"
        named = re.compile(rf"\s*{name}\b")
        found = (number for number, line in enumerate(lines, 1) if named.match(line))
        return next(found, max(1, len(lines))), ""

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call a function and return its result. Raises TaskFault and both errors of memory."""
        what = getattr(function, "__name__", "a function")
        return self._call(f"{what}()", self._line(function), function, *arguments, **named)

    def watched(self, function: Callable[..., Any]) -> AbstractContextManager[None]:
        """The body calls ``function`` by itself: should the process end there, that is told."""
        return running(f"{self._path}{self._line(function)}: {function.__name__}()")

    def refuse(self, function: Callable[..., Any], what: str) -> NoReturn:
        """Raise TaskFault for a result that differs from the declaration."""
        raise TaskFault(f"{self._path}{self._line(function)}: {what}")

    def _line(self, function: Callable[..., Any]) -> str:
        code = getattr(function, "__code__", None)
        return f":{code.co_firstlineno}" if isinstance(code, CodeType) else ""

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
        """Call a function that begins at ``line``, ``:7``."""
        try:
            with running(f"{self._path}{line}: {what}"), _endless(), _limited(self._seconds):
                return function(*arguments, **named)
        except torch.OutOfMemoryError:
            raise  # the machine's, not the task's
        except _LateError as error:
            place = self._place(error)
            raise TaskFault(f"{place}: {what} did not end within {self._seconds:g} s") from None
        except _EndError as error:
            raise TaskFault(f"{self._place(error)}: {what} ended its process ({error})") from None
        except BaseException as error:  # also those that end programs: it is the task's code
            if isinstance(error, MemoryError) and not self._is_innermost(error):
                raise  # likewise
            said = f"{what} raised {type(error).__name__}: {error}".rstrip(": ")
            raise TaskFault(f"{self._place(error)}: {said}") from error

    def _is_innermost(self, error: BaseException) -> bool:
        """Whether the task's own file raised it, or asked for too much in one expression."""
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        return trace is not None and trace.tb_frame.f_code.co_filename == self._full

    def _place(self, error: BaseException) -> str:
        """Path and line of the task's innermost frame."""
        if isinstance(error, SyntaxError) and error.filename == self._full:
            return f"{self._path}:{error.lineno}"
        place, trace = self._path, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self._full:
                place = f"{self._path}:{trace.tb_lineno}"
            trace = trace.tb_next
        return place


class _LateError(BaseException):
    """Raised inside a call that takes too long; not for the task's own ``except`` to catch."""


class _EndError(BaseException):
    """Raised in place of an end of the process."""


@contextmanager
def _endless() -> Iterator[None]:
    """Tell the line that ends the process, as far as Python has a function for that."""

    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(status: int) -> NoReturn:
        raise _EndError(f"exit code {status}")

    def abort() -> NoReturn:
        raise _EndError("SIGABRT")

    before = os._exit, os.abort
    os._exit, os.abort = leave, abort
    try:
        yield
    finally:
        os._exit, os.abort = before


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise _LateError in the body after so many seconds, and every second from then on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: object) -> None:
        raise _LateError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
