"""Triton's own rules: which functions are kernels, what they may contain, and who launches.

Under the interpreter a kernel is Python, so it could use what Triton's compiler refuses. These are
the refusals that need no types: by Triton 3.6's front end.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kernel_source import Refusal, Source
from terms.reasons import Reason

_Function = ast.FunctionDef
_ERROR = Reason.COMPILE_ERROR
_NODES: tuple[type[ast.AST], ...] = (
    ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Name, ast.Tuple, ast.List,
    ast.ListComp, ast.comprehension, ast.BinOp, ast.If, ast.IfExp, ast.Pass, ast.Compare,
    ast.UnaryOp, ast.While, ast.Subscript, ast.Slice, ast.For, ast.keyword, ast.Assert, ast.Call,
    ast.Constant, ast.BoolOp, ast.Attribute, ast.Expr, ast.JoinedStr, ast.FormattedValue,
    ast.With, ast.withitem, ast.Starred, ast.expr_context, ast.operator,
    ast.unaryop, ast.cmpop, ast.boolop,
)  # fmt: skip
_OPERATORS: tuple[type[ast.AST], ...] = (ast.MatMult, ast.In, ast.NotIn)


def check_kernels(source: Source, entry: ast.FunctionDef) -> None:
    """Raise Refusal unless `entry` launches a kernel, and every kernel is Triton's language."""
    kernels = [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, _Function) and any(map(_is_jit, node.decorator_list))
    ]
    if not kernels:
        raise Refusal(Reason.UNSUPPORTED_FEATURE, f"{source.name}: no Triton kernel (@triton.jit)")
    numbers = _plain_numbers(source.tree)
    for kernel in kernels:
        _check_language(source, kernel)
        _check_globals(source, kernel, numbers)
    if not _launches(source.tree, entry, {kernel.name for kernel in kernels}):
        raise source.refuse(entry, Reason.UNSUPPORTED_FEATURE, "no Triton kernel is launched")


def _is_jit(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(target, ast.Attribute):
        return target.attr == "jit"
    return isinstance(target, ast.Name) and target.id == "jit"


def _check_language(source: Source, kernel: _Function) -> None:
    for statement in kernel.body:
        for node in ast.walk(statement):
            what = _foreign(node)
            if what:
                raise source.refuse(node, _ERROR, f"kernel '{kernel.name}': {what}")
    for loop in ast.walk(kernel):
        if isinstance(loop, ast.While) or (isinstance(loop, ast.For) and not _is_static(loop.iter)):
            for node in ast.walk(loop):
                if isinstance(node, ast.Return):
                    what = f"kernel '{kernel.name}': Triton cannot return from within a loop"
                    raise source.refuse(node, _ERROR, what)


def _foreign(node: ast.AST) -> str:
    """The part of `node` that Triton does not compile; empty if it compiles."""
    operators = [*getattr(node, "ops", ()), getattr(node, "op", None)]
    foreign = [operator for operator in operators if isinstance(operator, _OPERATORS)]
    if foreign or not isinstance(node, _NODES):
        name = type(foreign[0] if foreign else node).__name__
        known = {"FunctionDef": "nested functions", "NamedExpr": "':='"}.get(name, f"'{name}'")
        return f"Triton does not compile {known}"
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        return "Triton does not compile chained comparisons"
    if isinstance(node, ast.Assign) and len(node.targets) > 1:
        return "Triton does not compile assignments to several targets"
    if isinstance(node, ast.For) and not isinstance(node.iter, ast.Call):
        return "Triton loops over range, tl.range and tl.static_range only"
    return ""


def _is_static(iterated: ast.expr) -> bool:
    function = iterated.func if isinstance(iterated, ast.Call) else iterated
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name == "static_range"


def _plain_numbers(tree: ast.Module) -> set[str]:
    """Name the module's variables that are plain numbers, which a kernel cannot see."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and _is_number(node.value):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def _is_number(value: ast.expr) -> bool:
    inner = value.operand if isinstance(value, ast.UnaryOp) else value
    return isinstance(inner, ast.Constant) and isinstance(inner.value, int | float)


def _check_globals(source: Source, kernel: _Function, numbers: set[str]) -> None:
    own = {argument.arg for argument in _arguments(kernel)}
    names = [node for part in kernel.body for node in ast.walk(part) if isinstance(node, ast.Name)]
    own |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
    for node in names:
        if node.id in numbers and node.id not in own:
            what = f"kernel '{kernel.name}' can use global '{node.id}' only as a tl.constexpr"
            raise source.refuse(node, _ERROR, what)


def _arguments(function: _Function) -> Iterator[ast.arg]:
    arguments = function.args
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)


def _launches(tree: ast.Module, entry: ast.FunctionDef, kernels: set[str]) -> bool:
    """Say whether `entry`, or what it refers to in the module, launches one of `kernels`."""
    definitions: dict[str, list[ast.AST]] = {}
    for statement in tree.body:
        for name in set(_defined(statement)):
            definitions.setdefault(name, []).append(statement)
    pending: list[ast.AST] = [entry]
    visited: set[int] = set()
    followed: set[str] = set()
    subscripted = named = False
    while pending:
        node = pending.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        for part in ast.walk(node):
            subscripted |= isinstance(part, ast.Call) and _has_launcher(part)
            if isinstance(part, ast.Name):
                named |= part.id in kernels
                if part.id not in followed:
                    followed.add(part.id)
                    pending += definitions.get(part.id, [])
    return subscripted and named


def _has_launcher(call: ast.Call) -> bool:
    """Whether ``kernel[grid]`` is called, or handed on: to ``functools.partial``, for example."""
    return any(isinstance(part, ast.Subscript) for part in (call.func, *call.args))


def _defined(statement: ast.AST) -> Iterator[str]:
    """The names that a statement of the module may define, outside the functions in it."""
    # Without recursion: an honest sum of a thousand terms is as deep.
    pending = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        pending += ast.iter_child_nodes(node)
