"""Tasks with a script that calls a function of the candidate's module and compares its results.

The script is run with a stand-in for the module. It learns the arguments of the call; when it is
given others, these are put in their place before the script computes what it expects. Where the
script compares a result of the call, the other side of the comparison is the reference's answer.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from imported.devices import EMPTY, instead_of_cuda
from imported.script_setting import as_on_a_gpu, by_default_on_the_cpu, no_launch, salted
from imported.script_stage import DoneError, Matches, Seen, Stage

REFERENCE = re.compile(r"(^|_)(ref|cpu|torch)(erence)?(_|$)")
"""The names of functions that compute what is expected."""

AGAIN = "it calls the module again"
"""Ends the run of a script that makes a second call."""

_LISTS = ("TEST_SHAPES", "TEST_CASES", "SEEDS")
_EQUAL = {"allclose", "equal", "isclose", "eq", "ne", "__eq__", "__ne__", "sub", "__sub__", "rsub"}
_ROUNDED = (torch.float32, torch.float16, torch.bfloat16)
_CASTS = {"float", "half", "bfloat16"}
_WATCHED = {*_EQUAL, *_CASTS, *EMPTY, "to", "type", "clone", "cpu"}
"""The functions that are not always what they are to others, if no keyword is passed."""


@dataclass(frozen=True)
class Script:
    """A script and the module that it loads.

    Attributes:
        runner: the script; ``run_correctness`` is its check, ``load_module`` gives the module.
        source: the module.
        walks: whether it goes through elements one by one. It is then run on the processor, also
            where the judge computes on a GPU, each of whose elements takes longer to be read.
        apart: whether the arguments of its call do not follow from what it expects. What it
            computes of that before the call is left out where only these are asked for.
    """

    runner: Path
    source: Path
    walks: bool = field(default=False, kw_only=True)
    apart: bool = field(default=False, kw_only=True)

    def sizes(self) -> tuple[dict[str, int], list[dict[str, int]]]:
        """The sizes of the first case by name, and of all cases that have as many."""
        names = self._names()
        cases: list[Any] = next((names[key] for key in _LISTS[:1] if key in names), [])
        rows = [dict(self._named(case)) for case in cases if isinstance(case, tuple)]
        first = rows[0] if rows else {}
        return first, [row for row in rows if row.keys() == first.keys()]

    def watch(
        self,
        sizes: Mapping[str, int],
        device: str,
        *,
        given: Mapping[str, Any] | None = None,
        updates: Sequence[str] = (),
        matches: Matches | None = None,
        exact: bool = False,
        early: bool = False,
        briefly: bool = False,
        noting: bool = False,
        replies: Mapping[str, Tensor] | None = None,
    ) -> Seen:
        """Run the check for some sizes, with the salt of the global generator's seed.

        With ``given``, these tensors take the place of the call's, and ``expected`` is filled;
        ``exact`` computes in double precision what the script computes in others; ``early`` puts
        them in their place where the script makes them, for what it expects may come from there.
        ``briefly`` ends with the call, where nothing but its arguments is asked for. With
        ``replies``, these are the call's results, and ``error`` is the script's verdict on them.
        """
        seen = Seen()
        births = (
            self.watch(sizes, device, briefly=True, noting=True).births
            if early and given is not None
            else {}
        )
        apart = self.apart and briefly and not noting
        stage = Stage(
            seen, given, updates, matches or {}, exact, births, briefly, noting, replies, apart
        )
        beside = self.beside(device)
        with contextlib.ExitStack() as setting:
            if beside:
                device = "cpu"
            else:
                setting.enter_context(as_on_a_gpu(device))
            setting.enter_context(by_default_on_the_cpu(device))
            setting.enter_context(salted())
            setting.enter_context(instead_of_cuda(device))
            setting.enter_context(_Watch(stage, exact=exact))
            names = self._prepared(stage, sizes)
            for name, value in [*names.items()]:
                if isinstance(value, types.FunctionType) and REFERENCE.search(name):
                    names[name] = stage.reference(name, value)
            stage.running = True
            try:
                seen.error = self._checked(names, sizes)
            except DoneError:
                seen.error = AGAIN
        if given is None and replies is None:
            seen.matches = stage.matched()
        return seen

    def beside(self, device: str) -> bool:
        """Whether the script runs on the processor, and the judge on a GPU."""
        return self.walks and device.startswith("cuda")

    def module(self, *, run: bool, device: str = "cpu") -> types.ModuleType:
        """The module; unless it is to ``run``, launches of its kernels do nothing."""
        import triton

        if run:  # a kernel's text is read from its file
            prepare(device)
            found = importlib.util.spec_from_file_location(self.source.stem, self.source)
            assert found is not None
            assert found.loader is not None
            module = importlib.util.module_from_spec(found)
            found.loader.exec_module(module)
            return module
        module = types.ModuleType(self.source.stem)
        module.__file__ = str(self.source)
        with contextlib.ExitStack() as stack:
            for name in ("jit", "autotune", "heuristics"):
                stack.enter_context(mock.patch.object(triton, name, no_launch))
            exec(compiled(self.source.read_text(), self.source), vars(module))  # noqa: S102 - the task's own code
        return module

    def said(self, sizes: Mapping[str, int], module: Any) -> str:
        """What the check says of ``module``, for some sizes; empty where it is right."""
        names = self._names()
        names["load_module"] = lambda *_: module
        self._choose(names, sizes)
        return self._checked(names, sizes)

    def _prepared(self, stage: Stage, sizes: Mapping[str, int]) -> dict[str, Any]:
        """The script's names, with a stand-in for the module, and one case left."""
        names = self._names()
        module = self.module(run=False)
        names["load_module"] = lambda *_: _StandIn(module, stage)
        self._choose(names, sizes)
        return names

    def _checked(self, names: Mapping[str, Any], sizes: Mapping[str, int]) -> str:
        """What the script says in the end; empty where all is right."""
        del sizes
        said = names["run_correctness"]()
        right, why = said if isinstance(said, tuple) else (said, "")
        return "" if right is True else str(why or "its check fails")

    def _names(self) -> dict[str, Any]:
        names: dict[str, Any] = {"__name__": "imported_task", "__file__": str(self.runner)}
        here = Path.cwd()
        try:
            exec(compiled(self.runner.read_text(), self.runner), names)  # noqa: S102 - the task's own code
        finally:
            os.chdir(here)
        return names

    def _named(self, case: tuple[Any, ...]) -> Iterator[tuple[str, int]]:
        for index, (name, value) in enumerate(zip(self._columns(len(case)), case, strict=True)):
            if type(value) is int and value > 0:
                yield name or f"size_{index}", value

    def _columns(self, number: int) -> list[str]:
        """What the script calls the parts of a case."""
        for found in re.finditer(r"for \w+, \(([\w, ]+)\) in enumerate\(TEST_", self._text()):
            columns = [name.strip() for name in found[1].split(",") if name.strip()]
            if len(columns) == number and len({*columns}) == number:
                return columns
        return [""] * number

    def _text(self) -> str:
        return self.runner.read_text()

    def _choose(self, names: dict[str, Any], sizes: Mapping[str, int]) -> None:
        """Leave one case, with these sizes."""
        for key in _LISTS:
            cases = names.get(key)
            if not isinstance(cases, list | tuple) or not cases:
                continue
            case = cases[0]
            if key == _LISTS[0] and isinstance(case, tuple):
                columns = self._columns(len(case))
                pairs = enumerate(zip(columns, case, strict=True))
                case = tuple(sizes.get(name or f"size_{i}", value) for i, (name, value) in pairs)
            names[key] = [case]


@lru_cache(maxsize=16)
def compiled(text: str, path: Path) -> types.CodeType:
    """The code of a file, which is run once for each observation."""
    return compile(text, path, "exec")


def prepare(device: str) -> None:
    """Have kernels run as on the platform ``cpu`` where there is no GPU."""
    if not device.startswith("cuda"):
        importlib.import_module("triton_cpu.interpreter").install()


class _StandIn:
    def __init__(self, module: types.ModuleType, stage: Stage) -> None:
        self._module = module
        self._stage = stage

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if not isinstance(value, types.FunctionType):
            return value
        return lambda *args, **kwargs: self._stage.call(name, value, args, kwargs)


class _Watch(TorchFunctionMode):
    def __init__(self, stage: Stage, *, exact: bool) -> None:
        super().__init__()
        self._stage = stage
        self._exact = exact

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The call; comparisons hold, memory is zero, and roundings may be left out."""
        del types
        name = getattr(func, "__name__", "")
        if not (kwargs or self._stage.traces or name in _WATCHED):  # nearly all of a million
            self._stage.seen.steps += 1
            return func(*args)
        if name in _EQUAL and len(args) >= 2 and self._stage.compared(args[0], args[1]):
            return _equal(name, args[0])
        keywords = dict(kwargs or {})
        if self._exact and self._stage.exactly:
            func, args = _exactly(func, name, args, keywords)
        self._stage.seen.steps += 1
        result = func(*args, **keywords)
        if name in {"clone", "cpu"} and args and self._stage.running:
            self._stage.copied(args[0], result)
        if name in EMPTY and isinstance(result, Tensor):
            result.zero_()
        if self._stage.traces:
            self._stage.operated(result, *args)
        return result


def _equal(name: str, like: Tensor) -> Any:
    """What the comparison of a tensor with another one gives if they are the same."""
    if name in {"allclose", "equal"}:
        return True
    if "sub" in name:
        return torch.zeros(like.shape, dtype=torch.float64, device=like.device)
    same = name not in {"ne", "__ne__"}
    return torch.full(like.shape, same, dtype=torch.bool, device=like.device)


def _exactly(func: Any, name: str, args: Any, keywords: dict[str, Any]) -> tuple[Any, Any]:
    """The function and its arguments in double precision, where they name another one."""
    if keywords.get("dtype") in _ROUNDED:
        keywords["dtype"] = torch.float64
    if name in _CASTS:
        return torch.Tensor.double, args[:1]
    if name in {"to", "type"}:
        return func, tuple(torch.float64 if _rounds(value) else value for value in args)
    return func, args


def _rounds(value: Any) -> bool:
    return isinstance(value, torch.dtype) and value in _ROUNDED
