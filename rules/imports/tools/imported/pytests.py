"""Tasks of one file: a kernel, a line of ``#``, and tests that launch the kernel or call it.

A solution replaces the file. What is above the line counts; what is below it is the script.
"""

from __future__ import annotations

import math
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from imported import marks
from imported.boundary import LeftOutError
from imported.constants import read_module
from imported.modules import first_line
from imported.script_declared import Told
from imported.script_setting import Idle, no_launch
from imported.script_stage import Stage
from imported.script_tier import learn
from imported.scripts import REFERENCE, Script, compiled, prepare

UNTIL = "#" * 100
"""The beginning of the line that divides a file; all of the line is ``#``."""

_SEPARATOR = re.compile(rf"^{UNTIL}#*\s*$", re.MULTILINE)
_OTHER_TESTS = re.compile(r"perf|save|compile")
"""Tests that measure, write files, or only compile."""

_TRIED = 3
"""How many cases of a test are tried, the smallest first."""

_TINY = 5
"""A size below is an edge case."""


_BESIDE = ("beside/pytest.py", "imported/marks.py", "imported/stand_in.py")


def learn_tests(path: Path) -> tuple[dict[str, Any], Told, str]:
    """A declaration without its files, what ``inputs`` and ``reference`` are told, the origin.

    Raises LeftOutError.
    """
    tests = Tests(path, path).chosen()
    attrs, told = learn(tests)
    beside = [f"//rules/imports/tools/{name}" for name in _BESIDE]
    attrs |= {"until": UNTIL, "adapter": beside[-1], "modules": beside}
    origin = read_module(path, functions=(), of="").origin
    return attrs, {**told, "test": tests.test, "case": tests.case}, origin


@dataclass(frozen=True)
class Tests(Script):
    """A file with a kernel and its tests; ``runner`` and ``source`` are the same.

    Attributes:
        test: the name of the test that is run.
        case: which of its cases is the one that others are compared with.
    """

    test: str = ""
    case: int = 0

    def chosen(self) -> Tests:
        """The first test, with its smallest case, that calls something. Raises LeftOutError."""
        said = "it has no test of what its kernel computes"
        for name, cases in self._tests().items():
            order = sorted(range(len(cases)), key=lambda index: _rank(cases[index]))
            for index in order[:_TRIED]:
                found = Tests(self.runner, self.source, name, index)
                torch.manual_seed(1)
                seen = found.watch(found.sizes()[0], "cpu")
                if seen.entry:
                    return found
                said = f"its test '{name}' calls nothing with tensors: {seen.error}"
        raise LeftOutError("NO_ENTRY", said[:200])

    def sizes(self) -> tuple[dict[str, int], list[dict[str, int]]]:
        """The integers of the case, and of all that differ from it in these alone."""
        cases = self._tests()[self.test]
        mine, others = _split(cases[self.case])
        split = map(_split, cases)
        return mine, [ints for ints, rest in split if rest == others and ints.keys() == mine.keys()]

    def module(self, *, run: bool, device: str = "cpu") -> types.ModuleType:
        """The part of the file above the line, as a module; its kernels ``run``."""
        assert run
        prepare(device)
        module = types.ModuleType(self.source.stem)
        module.__file__ = str(self.source)
        with (
            self._beside()
        ):  # a kernel's text is read from the whole file, whose lines are the same
            exec(compiled(self._parts()[0], self.source), vars(module))  # noqa: S102 - the task's own code
        return module

    def _tests(self) -> dict[str, list[dict[str, Any]]]:
        """The tests by name with their cases."""
        from imported.devices import instead_of_cuda
        from imported.script_setting import as_on_a_gpu

        with as_on_a_gpu("cpu"), instead_of_cuda("cpu"):
            names = self._executed(lambda _: None)
        return {
            name: marks.settings(value)
            for name, value in names.items()
            if name.startswith("test") and callable(value) and not _OTHER_TESTS.search(name)
        }

    def _prepared(self, stage: Stage, sizes: Mapping[str, int]) -> dict[str, Any]:
        del sizes

        def hear(names: dict[str, Any]) -> None:
            for name, value in [*names.items()]:
                if isinstance(value, Idle):
                    names[name] = _Kernel(stage, name, value)
                elif isinstance(value, types.FunctionType) and not REFERENCE.search(name):
                    names[name] = _heard(stage, name, value)

        return self._executed(hear)

    def _checked(self, names: Mapping[str, Any], sizes: Mapping[str, int]) -> str:
        function = names[self.test]
        known = function.__code__.co_varnames[: function.__code__.co_argcount]
        given = {**marks.settings(function)[self.case], **sizes}
        if "request" in known:
            given["request"] = marks.request(self.test)
        try:
            function(**given)
        except (Exception, marks.Skipped) as error:  # noqa: BLE001 - whatever a test raises
            return first_line(error)
        return ""

    def _executed(self, between: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """The names of the file; ``between`` changes those above the line for those below it."""
        import triton

        above, below = self._parts()
        names: dict[str, Any] = {"__name__": "imported_task", "__file__": str(self.source)}
        with self._beside(), ExitStack() as stack:
            for name in ("jit", "autotune", "heuristics"):
                stack.enter_context(mock.patch.object(triton, name, no_launch))
            exec(compiled(above, self.source), names)  # noqa: S102 - the task's own code
            between(names)
            exec(compiled(below, self.source), names)  # noqa: S102 - the task's own code
        return names

    def _parts(self) -> tuple[str, str]:
        """What is above the line, and what is below it, which keeps its lines' numbers."""
        text = self.source.read_text()
        line = _SEPARATOR.search(text)
        if line is None:
            raise LeftOutError("NO_ENTRY", "no line of '#' separates its kernel from its tests")
        return text[: line.start()], "\n" * text.count("\n", 0, line.end()) + text[line.end() :]

    @contextmanager
    def _beside(self) -> Iterator[None]:
        """The modules that the file imports for its tests."""
        timing: Any = types.ModuleType("performance_utils_pytest")
        timing.__getattr__ = lambda _: no_launch
        beside = {"pytest": marks, timing.__name__: timing}
        with mock.patch.dict(sys.modules, beside):
            yield


class _Kernel(Idle):
    def __init__(self, stage: Stage, name: str, kernel: Idle) -> None:
        super().__init__(kernel.fn)
        self._stage, self._name = stage, name

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        """A launch, which the stage hears."""
        return lambda *args, **kwargs: self._stage.launch(self._name, self, grid, args, kwargs)


def _heard(stage: Stage, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: stage.call(name, function, args, kwargs)


def _split(settings: Mapping[str, Any]) -> tuple[dict[str, int], dict[str, Any]]:
    """The sizes among the parameters of a test, and the others."""
    sizes = {n: v for n, v in settings.items() if type(v) is int and v > 0}
    return sizes, {n: v for n, v in settings.items() if n not in sizes}


def _rank(settings: Mapping[str, Any]) -> tuple[bool, int]:
    """Where a case stands among others: those with tiny sizes come last, then the largest."""
    sizes = _split(settings)[0].values()
    return any(size < _TINY for size in sizes), math.prod(sizes)
