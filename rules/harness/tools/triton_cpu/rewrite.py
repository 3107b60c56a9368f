"""Rewrites the source of a Triton kernel so that Python runs it as Triton would compile it.

Four things differ between the two languages. An assignment makes a tensor of a Python number.
`and`, `or` and `not` are elementwise. A branch is decided by a scalar tensor's value. And `min`,
`max` and `print` are Triton's. A tensor's own truth value is always true, as on a GPU: Triton's
library uses it to ask whether an optional argument is there.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable
from typing import Any, NoReturn

import triton.language as tl

from triton_cpu.visible import foreign_name

# Names under which a rewritten kernel reaches the functions below.
_PREFIX = "__triton_cpu_"
# Python's functions that are Triton's within a kernel.
_BUILTINS = ("min", "max", "print")


class KernelSourceError(Exception):
    """<file>:<line>: <construct>, which Triton does not compile."""


class _Rewriter(ast.NodeTransformer):
    def __init__(self, filename: str, first_line: int, builtin_names: frozenset[str]) -> None:
        self._filename = filename
        self._offset = first_line - 1
        self._builtin_names = builtin_names

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Make a tensor of an assigned number."""
        if len(node.targets) > 1:
            self._refuse(node, "an assignment to several targets")
        self.generic_visit(node)
        node.value = _call("assign", [node.value])
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Fold `a and b and c` from the left, the right sides evaluated on demand."""
        self.generic_visit(node)
        name = "and" if isinstance(node.op, ast.And) else "or"
        folded = node.values[0]
        for value in node.values[1:]:
            folded = _call(name, [folded, _deferred(value)])
        return folded

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """Negate elementwise."""
        self.generic_visit(node)
        return _call("not", [node.operand]) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Refuse `a < b < c`, which Python would decide by the truth of `a < b`."""
        if len(node.ops) > 1:
            self._refuse(node, "a chained comparison")
        self.generic_visit(node)
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        """Decide by value."""
        return self._decided(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        """Decide by value."""
        return self._decided(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Decide by value."""
        return self._decided(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Decide by value."""
        return self._decided(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Call Triton's `min`, `max` and `print` instead of Python's."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in self._builtin_names:
            node.func = ast.Name(id=_name(node.func.id), ctx=ast.Load())
        return node

    def _decided(self, node: ast.If | ast.While | ast.IfExp | ast.Assert) -> ast.AST:
        self.generic_visit(node)
        node.test = _call("truth", [node.test])
        return node

    def _refuse(self, node: ast.expr | ast.stmt, what: str) -> NoReturn:
        line = node.lineno + self._offset
        raise KernelSourceError(f"{self._filename}:{line}: {what}, which Triton does not compile")


def rewritten(function: Callable[..., Any], semantic: Any) -> Callable[..., Any]:
    """Give the function that runs the kernel `function` under Triton's rules.

    It shares the globals of `function` and the values of its free variables. Raises
    KernelSourceError where there is no source, or Triton would not take it, or it names what
    is Python's and no kernel's.
    """
    try:
        lines, first = inspect.getsourcelines(function)
    except OSError as error:
        raise KernelSourceError(f"{function.__name__}: a kernel must be in a file") from error
    filename = inspect.getsourcefile(function) or function.__code__.co_filename
    tree = ast.parse(textwrap.dedent("".join(lines)))
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise KernelSourceError(f"{filename}:{first}: a kernel must be a plain function")
    definition.decorator_list = []
    if node := foreign_name(definition, function):
        line, what = first - 1 + getattr(node, "lineno", 1), ast.unparse(node)
        raise KernelSourceError(f"{filename}:{line}: '{what}', which no kernel can see")
    names = frozenset(name for name in _BUILTINS if name not in function.__globals__)
    ast.increment_lineno(_Rewriter(filename, first, names).visit(tree), first - 1)
    return _compiled(function, definition, filename, semantic)


def _compiled(
    function: Callable[..., Any], definition: ast.FunctionDef, filename: str, semantic: Any
) -> Callable[..., Any]:
    """Compile within a function that has the free variables as parameters."""
    free = function.__code__.co_freevars
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    outer = ast.FunctionDef(
        name=_name("scope"),
        args=ast.arguments(
            posonlyargs=[], args=[ast.arg(arg=name) for name in free], kwonlyargs=[],
            kw_defaults=[], defaults=[],
        ),
        body=[definition, ast.Return(value=ast.Name(id=definition.name, ctx=ast.Load()))],
        decorator_list=[],
    )  # fmt: skip
    module = ast.fix_missing_locations(ast.Module(body=[outer], type_ignores=[]))
    scope = function.__globals__
    scope.update({_name(key): value for key, value in _helpers(semantic).items()})
    local: dict[str, Any] = {}
    exec(compile(module, filename, "exec"), scope, local)  # noqa: S102 - the kernel itself
    kernel: Callable[..., Any] = local[_name("scope")](*cells)
    return kernel


def _helpers(semantic: Any) -> dict[str, Callable[..., Any]]:
    def assign(value: Any) -> Any:
        return semantic.to_tensor(value, False)  # noqa: FBT003 - positional in Triton

    return {
        "assign": assign,
        "and": _and,
        "or": _or,
        "not": _not,
        "truth": _truth,
        "min": _extremum(builtins.min, tl.minimum),
        "max": _extremum(builtins.max, tl.maximum),
        "print": tl.device_print,
    }


def _truth(value: Any) -> bool:
    """Decide a branch: only a scalar can."""
    if not isinstance(value, tl.tensor):
        return bool(value)
    data = value.handle.data
    if data.size != 1:
        raise TypeError(f"a block of shape {list(data.shape)} cannot decide a branch")
    return bool(data.item())


def _and(left: Any, right: Callable[[], Any]) -> Any:
    if _is_block(left):
        return left.logical_and(right())
    if not _truth(left):
        return left
    return _joined(left, right(), "logical_and")


def _or(left: Any, right: Callable[[], Any]) -> Any:
    if _is_block(left):
        return left.logical_or(right())
    if _truth(left):
        return left
    return _joined(left, right(), "logical_or")


def _joined(left: Any, right: Any, method: str) -> Any:
    """Finish a boolean operation of a scalar: elementwise where the right side is a block."""
    if _is_block(right) and isinstance(left, tl.tensor):
        return getattr(left, method)(right)
    return right


def _not(value: Any) -> Any:
    return value == 0 if _is_block(value) else not _truth(value)


def _extremum(python: Callable[..., Any], triton: Callable[..., Any]) -> Callable[..., Any]:
    def choose(*args: Any) -> Any:
        if any(isinstance(value, tl.tensor) for value in args):
            return triton(*args)
        return python(*args)

    return choose


def _is_block(value: Any) -> bool:
    return isinstance(value, tl.tensor) and value.type.is_block()


def _name(helper: str) -> str:
    return f"{_PREFIX}{helper}__"


def _call(helper: str, arguments: list[ast.expr]) -> ast.Call:
    function = ast.Name(id=_name(helper), ctx=ast.Load())
    return ast.Call(func=function, args=arguments, keywords=[])


def _deferred(value: ast.expr) -> ast.Lambda:
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(args=nothing, body=value)
