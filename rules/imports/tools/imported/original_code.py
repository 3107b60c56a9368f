"""A benchmark's own code as it stands: parts of its check, on another device."""

from __future__ import annotations

import ast
import builtins
import contextlib
import symtable
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import torch

from imported.devices import instead_of_cuda


def definitions(path: Path, names: Collection[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Functions and classes of the module at ``path``, with ``given`` for other names that it has.

    Modules of a benchmark import much that their checks do not need. Raises NameError where
    something is missing: that is not a finding about the benchmark.
    """
    source = path.read_text()
    tree = ast.parse(source)
    known: dict[str, Any] = {"__name__": "original_check"}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            with contextlib.suppress(ImportError):  # its own packages, and unneeded ones
                exec(compile(ast.Module([node], []), path, "exec"), known)  # noqa: S102 - imports
    known.update(given)
    tree.body = [node for node in tree.body if getattr(node, "name", None) in names]
    exec(compile(tree, path, "exec"), known)  # noqa: S102 - the benchmark's code
    missing = {*names, *_read(ast.unparse(tree))} - known.keys() - vars(builtins).keys()
    if missing:
        raise NameError(f"{path.name} has no {', '.join(sorted(missing))}")
    return known


def load_modules(root: Path, files: Iterable[str]) -> ModuleType:
    """The last module of ``files``; each is loaded under its own name, for the others to import."""
    for path in map(root.joinpath, files):
        module = sys.modules[path.stem] = ModuleType(path.stem)
        module.__file__ = str(path)
        exec(compile(path.read_text(), path, "exec"), vars(module))  # noqa: S102 - the task's code
    return module


def _read(source: str) -> Iterator[str]:
    """The names of the module that its functions read."""
    tables = symtable.symtable(source, "module", "exec").get_children()
    for table in tables:
        yield from (s.get_name() for s in table.get_symbols() if s.is_global())


@contextlib.contextmanager
def on(device: str) -> Iterator[None]:
    """Code that names a GPU runs on ``device``, and waits for nothing on ``cpu``."""
    if device.startswith("cuda"):
        yield
        return
    with (
        instead_of_cuda(device),
        mock.patch.object(torch.cuda, "synchronize", return_value=None),
        mock.patch.object(torch.cuda, "empty_cache", return_value=None),
        mock.patch.object(torch.cuda, "manual_seed", return_value=None),
    ):
        yield
