"""A model with other kernels in it, as one file that is a solution of the task ``whole``."""

from __future__ import annotations

import json
from collections.abc import Mapping

from kabuild.neural.packages import Known

_HEAD = '''\
"""The model {name}{said}. Written by `kabuild model verify`."""

import linecache
import sys
import types

import torch


def _module(name, text):
    """A module from a text, whose lines are found by who looks for the source of a function."""
    file = f"<{{name}}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    module = types.ModuleType(name)
    module.__file__ = file
    sys.modules[name] = module
    exec(compile(text, file, "exec"), module.__dict__)
    return module


def _given_contiguous(kernel):
    """A kernel that gets contiguous tensors, as in its task, whatever other parts return."""

    def call(*arguments):
        return kernel(*(a.contiguous() if isinstance(a, torch.Tensor) else a for a in arguments))

    return call


_model = _module("kabuild_model", {model})
'''

_BUILD = '''

_HELD = {held}


def build():
    """The model, with a forward that calls its parts."""
    model = _model.build()
    held, constants = [], [{constants}]
    for owner, name in _HELD:
        module = model.get_submodule(owner)
        tables = module._parameters, module._buffers
        held.append((tables[0] if name in tables[0] else tables[1], name))

    def call(self, *arguments):
        constants[:] = [constant.to(arguments[0].device) for constant in constants]
        return forward([table[name] for table, name in held], constants, *arguments)

    model.__class__ = type(type(model).__name__, (type(model),), {{"forward": call}})
    return model
'''


def assemble(known: Known, model: str, kernels: Mapping[str, str]) -> str:
    """The model whose file is ``model``, with ``kernels`` by part; all others as PyTorch has them.

    Every kernel is a separate module.
    """
    said = f" with other kernels for {', '.join(sorted(kernels))}" if kernels else " as a graph"
    texts = [_HEAD.format(name=known.name, said=said, model=_quoted(model))]
    texts += [f"\n\n{text}" for text in known.graph.functions.values()]
    for name, kernel in kernels.items():
        module = f'_module("kabuild_part_{name}", {_quoted(kernel)})'
        texts.append(f"\n\npart_{name} = _given_contiguous({module}.{name})\n")
    texts.append(f"\n\n{known.graph.forward}")
    held = "\n".join(("[", *(f"    {item!r}," for item in known.graph.held), "]"))
    texts.append(_BUILD.format(held=held, constants=", ".join(known.graph.constants)))
    return "".join(texts)


def _quoted(text: str) -> str:
    """A text as an expression of Python, a line of it in each line."""
    lines = "\n".join(f"    {_literal(line)}" for line in text.splitlines(keepends=True))
    return f"(\n{lines}\n)" if lines else '""'


def _literal(line: str) -> str:
    """A literal of Python. JSON writes what needs more than 16 bits as two halves, which are none.

    JSON's quotes stay for all other lines: the file's bytes are part of keys.
    """
    return json.dumps(line) if line.isascii() else ascii(line)
