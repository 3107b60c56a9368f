"""Stand-ins for modules that operators of PyTorch's device ``meta`` import without need.

Such operators, where they are written in Python, ask the compiler at their first call how it sees
them, and test whether their arguments or sizes are expressions of SymPy. Nothing is compiled in a
judge, and nothing is an expression. The compiler takes four seconds to import, SymPy two.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

import torch


class _NoExpression:
    """The class of SymPy's expressions while there are none."""


def _equal(one: Any, other: Any) -> bool:
    """Whether two sizes, or two sequences of them of any kind, are equal."""
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return [*one] == [*other]
    return bool(one == other)


_CONTENTS: Mapping[str, Mapping[str, Any]] = {
    "torch._dynamo": {"disable": lambda function, *_, **__: function},
    "torch.fx.experimental.symbolic_shapes": {
        "expect_true": bool,
        "free_unbacked_symbols": lambda _: set(),
        "guard_int": int,
        "guard_or_false": bool,
        "guard_or_true": bool,
        "guard_size_oblivious": bool,
        "guarding_hint_or_throw": lambda size: size,
        "has_guarding_hint": lambda _: True,
        "has_hint": lambda _: True,
        "is_nested_int": lambda _: False,
        "size_hint": lambda size, **_: size,
        "statically_known_true": bool,
        "sym_and": lambda *conditions: all(conditions),
        "sym_eq": _equal,
        "sym_or": lambda *conditions: any(conditions),
    },
    "sympy": {"Basic": _NoExpression},
}
"""What is used of each module, as it is for plain numbers."""

_PACKAGES = ("torch._dynamo", "sympy")
"""Those that contain modules, whose import asks for ``__path__``."""


@contextmanager
def light_imports() -> Iterator[None]:
    """Use the stand-ins in the body, except for modules that are imported already."""
    with ExitStack() as stack:
        if "torch._dynamo" not in sys.modules:
            stack.callback(vars(torch).pop, "_dynamo", None)  # the name that an import has bound
        for name, contents in _CONTENTS.items():
            if name not in sys.modules:
                stack.enter_context(_standing_in(_StandIn(name, contents)))
        yield


@contextmanager
def _standing_in(module: ModuleType) -> Iterator[None]:
    sys.modules[module.__name__] = module
    try:
        yield
    finally:
        if sys.modules.get(module.__name__) is module:
            del sys.modules[module.__name__]


class _StandIn(ModuleType):
    """A module with some contents; the first use of anything else imports the module itself."""

    def __init__(self, name: str, contents: Mapping[str, Any]) -> None:
        super().__init__(name)
        vars(self).update(contents)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and not (name == "__path__" and self.__name__ in _PACKAGES):
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)
