"""Loads a Python candidate from its file."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from base.program import Program

MODULE = "kabuild_candidate"
Entry = Callable[..., Any]


class MissingEntry(Exception):  # noqa: N818 (the candidate's, no error of ours)
    """The candidate's module does not define the entry."""


def load_module(path: str, name: str = MODULE) -> ModuleType:
    """Import the file at ``path`` under a name. Raises whatever the module raises."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load_entry(program: Program, path: str) -> Entry:
    """Import the file at ``path`` as the module ``MODULE``, and return its entry.

    If the entry of a ``torch`` module is ``baseline`` and the module defines none, its
    ``reference`` is used. For ``torch.compile``, ``compilable`` comes before both: the module may
    define it to compute the same in a form that compiles better. Raises MissingEntry, and whatever
    the module raises.
    """
    module = load_module(path)
    names = [program.entry]
    if (program.abi, program.entry) == ("torch", "baseline"):
        names = [*(["compilable"] if program.mode else []), "baseline", "reference"]
    for name in names:
        entry = getattr(module, name, None)
        if callable(entry):
            return entry  # type: ignore[no-any-return]
    raise MissingEntry(f"no function '{program.entry}'")
