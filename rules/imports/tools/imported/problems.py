"""Problems of the form ``generate_input`` and ``ref_kernel``, or with a function for each part.

Of the second form are those whose solutions define several functions, which get parts of the same
data: ``generate_inputs``, and functions called ``reference_<part>``.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from imported.boundary import LeftOutError
from imported.devices import FilledMemory, instead_of_cuda
from imported.functions import Learnt, Values, learn, tensors
from imported.original_code import load_modules

GENERATE, REFERENCE, ENTRY = "generate_input", "ref_kernel", "custom_kernel"
GENERATE_PARTS, PREFIX = "generate_inputs", "reference_"
SEEDS = 2**16
"""Seeds are below this, as the originals' are: some add theirs to values, which then differ in it
alone."""

_WIDE, _EVALUATION = "f64", "eval.py"
_CONSTANT = re.compile(r"^(\w+) = ([\d_]+)$", re.MULTILINE)
_TEST = re.compile(r'^ *- (\{(?![^{}]*"source")[^{}]*\})', re.MULTILINE)
Settings = dict[str, Any]


@dataclass(frozen=True)
class Problem:
    """What is called, and with what.

    Attributes:
        function: what computes the expected results, from what ``data`` returns by name.
        data: the arguments for some settings and a seed.
        entry: what a solution defines, in words of a brief ``wanted``.
        settings: sizes that the benchmark's evaluation passes besides those of a test.
        attrs: what a declaration says.
        text: how the call is written, if not with all arguments in their order.
    """

    function: Callable[..., Any]
    data: Callable[..., Mapping[str, Any]]
    entry: str
    wanted: str
    attrs: Mapping[str, Any]
    settings: Mapping[str, int] = field(default_factory=dict)
    text: Callable[[Mapping[str, str]], str] | None = None

    def call(self, settings: Mapping[str, Any], device: str) -> Values:
        """The arguments for some settings, under the seed of the global generator."""
        seed = torch.initial_seed() % SEEDS
        with instead_of_cuda(device), FilledMemory():
            return self.data(**settings, seed=seed)

    def learn(self, settings: Mapping[str, Any], *, checked: bool) -> Learnt:
        """What crosses the boundary at some settings. Raises LeftOutError.

        ``checked`` is whether the problem's own check says what is right.
        """

        def call(moved: Mapping[str, int], device: str) -> tuple[Values, list[Tensor]]:
            values = self.call({**settings, **moved}, device)
            return values, list(tensors(values).values())

        return learn(
            self.function,
            call,
            {name: value for name, value in settings.items() if type(value) is int},
            self.entry,
            devices=("meta", "cpu"),
            text=self.text,
            checked=checked,
            memory=True,
        )


def load_reference(root: Path, files: Sequence[str]) -> ModuleType:
    """The module that says what is right, the first of ``files``, after those that it imports."""
    imports = (file for file in files[1:] if file.endswith(".py") and not _evaluates(file))
    return load_modules(root, [*imports, files[0]])


def read_problem(root: Path, files: Sequence[str]) -> Problem:
    """The problem in ``files``. Raises LeftOutError where it has neither form."""
    stem = Path(files[0]).parent.name.removesuffix("_py")
    evaluation = next(((root / file).read_text() for file in files if _evaluates(file)), "")
    names = vars(load_reference(root, files))
    if {GENERATE, REFERENCE} <= names.keys():
        generate = names[GENERATE]
        return Problem(
            function=names[REFERENCE],
            data=lambda **settings: {"data": generate(**settings)},
            entry=ENTRY,
            wanted=f"a function {ENTRY} that computes the same as {REFERENCE}",
            attrs={"baseline": REFERENCE},
        )
    parts = {n.removeprefix(PREFIX): f for n, f in names.items() if n.startswith(PREFIX)}
    if GENERATE_PARTS not in names or len(parts) < 2 or not evaluation:
        what = f"it has no {GENERATE} and {REFERENCE}, so that nothing says what is called"
        raise LeftOutError("NO_ENTRY", what)
    return _of_parts(names[GENERATE_PARTS], parts, stem, evaluation)


def settings_in(text: str) -> list[Settings]:
    """The settings of a problem's tests, the largest first, and then those of its benchmarks.

    ``text`` is the problem's declaration. Benchmarks are mostly too large to learn from.
    """
    tests, _, benchmarks = text.partition("\nbenchmarks:")
    return [*sorted(_settings(tests), key=_size, reverse=True), *_settings(benchmarks)]


def checks_properties(code: str) -> bool:
    """Whether a reference's check asks for properties of a result, and not for the reference's."""
    return "check_impl" in code and REFERENCE not in code.partition("check_impl")[2]


def narrowed(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """A declaration whose result is in single precision, where the data is, too.

    References compute some sums in double precision and return that; solutions need not.
    """
    (name, form), *others = attrs["outputs"].items()
    start = f"{name} = {ENTRY}("
    wide = [one for one in attrs["inputs"].values() if one.startswith(_WIDE)]
    if others or wide or not form.startswith(_WIDE) or not attrs["call"].startswith(start):
        return dict(attrs)
    data = attrs["call"].removeprefix(start).removesuffix(")")
    return {
        **attrs,
        "outputs": {name: form.replace(_WIDE, "f32", 1)},
        "call": f"{name} = narrowed({data}, f32)",
        "entry": ENTRY,
        "adapter": "//rules/imports/tools/narrowed.py",
    }


def _settings(text: str) -> list[Settings]:
    found = (ast.literal_eval(test) for test in _TEST.findall(text))
    return [{name: value for name, value in test.items() if name != "seed"} for test in found]


def _size(settings: Settings) -> int:
    return math.prod(value for value in settings.values() if type(value) is int)


def _evaluates(file: str) -> bool:
    return Path(file).name == _EVALUATION


def _of_parts(
    generate: Callable[..., Any], parts: Mapping[str, Callable[..., Any]], stem: str, text: str
) -> Problem:
    taken = {part: [*inspect.signature(function).parameters] for part, function in parts.items()}
    names = max(taken.values(), key=len)
    first = next(iter(parts))

    def function(**values: Any) -> list[Any]:
        return [parts[part](*(values[name] for name in taken[part])) for part in parts]

    def called(said: Mapping[str, str]) -> str:
        passed = (f"{part!r}: ({', '.join(said[name] for name in taken[part])},)" for part in parts)
        return f"several({stem!r}, {{{', '.join(passed)}}})"

    return Problem(
        function=function,
        data=lambda **settings: dict(zip(names, generate(**settings), strict=True)),
        entry=f"{stem}_{first}",
        wanted=" and ".join(f"{stem}_{part}" for part in parts)
        + " that compute the same as "
        + " and ".join(f"{PREFIX}{part}" for part in parts),
        attrs={
            "baseline": f"{PREFIX}{first}",
            "entry": f"{stem}_{first}",
            "adapter": "//rules/imports/tools/several.py",
        },
        settings=_passed(generate, text),
        text=called,
    )


def _passed(generate: Callable[..., Any], evaluation: str) -> dict[str, int]:
    """The constants of an evaluation that it passes to ``generate``."""
    constants = {name: int(value) for name, value in _CONSTANT.findall(evaluation)}
    arguments = next(
        node.args
        for node in ast.walk(ast.parse(evaluation))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == GENERATE_PARTS
    )
    known = zip(inspect.signature(generate).parameters, arguments, strict=False)
    said = ((name, value.id) for name, value in known if isinstance(value, ast.Name))
    return {name: constants[constant] for name, constant in said if constant in constants}
