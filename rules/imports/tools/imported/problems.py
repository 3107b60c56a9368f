"""Problems of the form ``generate_input`` and ``ref_kernel``, or with a function for each part.

Of the second form are those whose solutions define several functions, which get parts of the same
data: ``generate_inputs``, and functions called ``reference_<part>``.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

GENERATE, REFERENCE, ENTRY = "generate_input", "ref_kernel", "custom_kernel"
GENERATE_PARTS, PREFIX = "generate_inputs", "reference_"
_WIDE = "f64"
_CONSTANT = re.compile(r"^(\w+) = ([\d_]+)$", re.MULTILINE)


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


def read_problem(reference: ModuleType, stem: str, evaluation: str) -> Problem | None:
    """The problem of a module; None where it has neither form.

    ``stem`` begins the names of a solution's functions, where there are several; ``evaluation`` is
    the text of the problem's own evaluation, if it has one.
    """
    names = vars(reference)
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
        return None
    return _of_parts(names[GENERATE_PARTS], parts, stem, evaluation)


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
