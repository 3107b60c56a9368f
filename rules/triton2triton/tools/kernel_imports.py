"""What a candidate module may import and name.

This keeps honest work portable: a kernel module computes with Triton and PyTorch and nothing else.
This is not a sandbox; the runner's process is one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kernel_source import Source
from terms.reasons import Reason

_MODULES = frozenset(
    {
        "__future__", "collections", "collections.abc", "dataclasses", "enum", "functools",
        "itertools", "math", "numbers", "operator", "torch", "torch.nn", "torch.nn.functional",
        "triton", "triton.language", "triton.language.core", "triton.language.extra",
        "triton.language.extra.cuda", "triton.language.extra.cuda.libdevice",
        "triton.language.extra.hip", "triton.language.extra.hip.libdevice",
        "triton.language.extra.libdevice", "triton.language.math", "triton.language.random",
        "triton.language.standard", "triton.runtime", "triton.runtime.driver",
        "triton.tools.tensor_descriptor", "typing", "typing_extensions",
    }
)  # fmt: skip
# Functions that reach what the import list keeps out.
_NAMES = frozenset(
    {
        "__builtins__", "__import__", "__loader__", "__spec__", "breakpoint", "compile",
        "delattr", "eval", "exec", "exit", "globals", "input", "locals", "open", "quit",
        "setattr", "vars",
    }
)  # fmt: skip
# Attributes of allowed modules that are other modules, or load and store code and data.
_ATTRIBUTES = frozenset(
    {
        "_C", "asyncio", "builtins", "cpp_extension", "ctypes", "from_file", "gc", "hub",
        "importlib", "inspect", "jit_hook", "load_inline", "load_library", "multiprocessing",
        "os", "pathlib", "pickle", "serialization", "shutil", "signal", "socket", "subprocess",
        "sys", "tempfile", "threading",
    }
)  # fmt: skip
_TORCH_FUNCTIONS = frozenset({"compile", "distributed", "load", "package", "save"})
_HARMLESS_DUNDERS = frozenset({"__doc__", "__init__", "__name__", "__post_init__"})


def check_imports(source: Source) -> None:
    """Raise Refusal for an import or a name that a kernel module may not have."""
    for node in ast.walk(source.tree):
        for what in _unsupported(node):
            raise source.refuse(node, Reason.UNSUPPORTED_FEATURE, what)


def _unsupported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (_import(alias.name) for alias in node.names if alias.name not in _MODULES)
    elif isinstance(node, ast.ImportFrom):
        yield from _from_import(node)
    elif isinstance(node, ast.Name) and node.id in _NAMES:
        yield f"'{node.id}' is not available to a kernel module"
    elif isinstance(node, ast.Attribute):
        yield from _attribute(node)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        yield from _getattr(node)


def _import(name: str) -> str:
    return f"import of '{name}' is not available to a kernel module"


def _from_import(node: ast.ImportFrom) -> Iterator[str]:
    module = node.module or ""
    if node.level or module not in _MODULES:
        yield _import("." * node.level + module)
        return
    for alias in node.names:
        name = f"{module}.{alias.name}"
        if alias.name == "*":
            yield f"'from {module} import *' hides what is used; import names or the module"
        elif _is_reserved(alias.name) or (module == "torch" and alias.name in _TORCH_FUNCTIONS):
            yield _import(name)


def _attribute(node: ast.Attribute) -> Iterator[str]:
    of_torch = isinstance(node.value, ast.Name) and node.value.id == "torch"
    if _is_reserved(node.attr) or (of_torch and node.attr in _TORCH_FUNCTIONS):
        yield f"attribute '{node.attr}' is not available to a kernel module"


def _getattr(node: ast.Call) -> Iterator[str]:
    """`getattr` with a literal name is an attribute; with a computed one it could be any."""
    if not (isinstance(node.func, ast.Name) and node.func.id in {"getattr", "hasattr"}):
        return
    name = node.args[1] if len(node.args) > 1 else None
    if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
        yield f"'{node.func.id}' needs a literal name"
    elif _is_reserved(name.value):
        yield f"attribute '{name.value}' is not available to a kernel module"


def _is_reserved(name: str) -> bool:
    dunder = name.startswith("__") and name.endswith("__") and name not in _HARMLESS_DUNDERS
    return dunder or name in _ATTRIBUTES
