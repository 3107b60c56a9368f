"""Calls of a task's ``reference.py``, with a time limit and the places of failures."""

from __future__ import annotations

import importlib.util
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NoReturn

import torch

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
            raise TaskFault(f"{self._path}: it has no function '{name}'")
        return function

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call a function and return its result. Raises TaskFault and both errors of memory."""
        return self._call(f"{function.__name__}()", function, *arguments, **named)

    def refuse(self, function: Callable[..., Any], what: str) -> NoReturn:
        """Raise TaskFault for a result that differs from the declaration."""
        code = getattr(function, "__code__", None)
        line = f":{code.co_firstlineno}" if isinstance(code, CodeType) else ""
        raise TaskFault(f"{self._path}{line}: {what}")

    def _load(self) -> ModuleType:
        specification = importlib.util.spec_from_file_location(
            "kabuild_task_reference", Path(self._full)
        )
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        self._call("the import", specification.loader.exec_module, module)
        return module

    def _call(self, what: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        try:
            with _limited(self._seconds):
                return function(*arguments, **named)
        except (MemoryError, torch.OutOfMemoryError):
            raise  # the machine's, not the task's
        except _LateError as error:
            place = self._place(error)
            raise TaskFault(f"{place}: {what} did not end within {self._seconds:g} s") from None
        except (Exception, SystemExit) as error:
            said = f"{what} raised {type(error).__name__}: {error}".rstrip(": ")
            raise TaskFault(f"{self._place(error)}: {said}") from error

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
