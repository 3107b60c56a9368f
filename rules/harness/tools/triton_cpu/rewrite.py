"""Rewrites the source of a Triton kernel so that Python runs it as Triton would compile it.

Four things differ between the two languages. An assignment turns a Python number into a tensor.
`and`, `or` and `not` are elementwise. A branch is decided by a scalar tensor's value. And `min`,
`max` and `print` are Triton's. A tensor's own truth value is always true, as on a GPU: Triton's
library uses it to test whether an optional argument is present.

A loop variable stays a Python number, because that is fast. Where the kernel reads an attribute of
it, indexes it, or passes it to a function, it is turned into a tensor.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import triton.language as tl

from triton_cpu import language
from triton_cpu.plain import Foreign
from triton_cpu.semantics import helpers

# Names under which a rewritten kernel reaches the functions below.
_PREFIX = "__triton_cpu_"
# Python's functions that Triton replaces within a kernel.
_BUILTINS = ("min", "max", "print")
# Functions that get loop variables as Python numbers.
_OF_NUMBERS = frozenset({*language.BUILTINS, *(f"{_PREFIX}{name}__" for name in _BUILTINS)})


class KernelSourceError(Exception):
    """<file>:<line>: <construct>, which Triton does not compile."""


class _Rewriter(ast.NodeTransformer):
    def __init__(
        self,
        filename: str,
        first_line: int,
        builtin_names: frozenset[str],
        counters: frozenset[str] = frozenset(),
    ) -> None:
        self._filename = filename
        self._offset = first_line - 1
        self._builtin_names = builtin_names
        self._counters = counters

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Turn an assigned number into a tensor."""
        if len(node.targets) > 1:
            self._refuse(node, "an assignment to several targets")
        self.generic_visit(node)
        node.value = _call("assign", [node.value])
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Fold `a and b and c` from the left; right sides are evaluated on demand."""
        self.generic_visit(node)
        name = "and" if isinstance(node.op, ast.And) else "or"
        folded = node.values[0]
        for value in node.values[1:]:
            folded = _call(name, [folded, _deferred(value)])
        return folded

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """Apply `not` elementwise."""
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
        """Call Triton's `min`, `max` and `print`, not Python's; pass loop variables as tensors."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in self._builtin_names:
            node.func = ast.Name(id=_name(node.func.id), ctx=ast.Load())
        if not (isinstance(node.func, ast.Name) and node.func.id in _OF_NUMBERS):
            node.args = [self._tensor(argument) for argument in node.args]
            for keyword in node.keywords:
                keyword.value = self._tensor(keyword.value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Index a loop variable as a tensor."""
        self.generic_visit(node)
        node.value = self._tensor(node.value)
        return node

    def _tensor(self, node: ast.expr) -> ast.expr:
        is_counter = isinstance(node, ast.Name) and node.id in self._counters
        return _call("tensor", [node]) if is_counter else node

    def _decided(self, node: ast.If | ast.While | ast.IfExp | ast.Assert) -> ast.AST:
        self.generic_visit(node)
        node.test = _call("truth", [node.test])
        return node

    def _refuse(self, node: ast.expr | ast.stmt, what: str) -> NoReturn:
        line = node.lineno + self._offset
        raise KernelSourceError(f"{self._filename}:{line}: {what}, which Triton does not compile")


class _Parted(ast.NodeTransformer):
    """Rewrites `x += y` as `x = x + y`, as Triton does: Python would change a list in place."""

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Assign the operator's result."""
        if not isinstance(node.target, ast.Name):
            return node
        old = ast.copy_location(ast.Name(id=node.target.id, ctx=ast.Load()), node.target)
        value = ast.copy_location(ast.BinOp(left=old, op=node.op, right=node.value), node)
        return ast.copy_location(ast.Assign(targets=[node.target], value=value), node)


class _Sealer(ast.NodeTransformer):
    """Binds the names in a candidate's kernel to permitted objects only.

    A path such as ``tl.math.exp`` becomes the object itself; other attributes are read through
    ``language.attribute``.
    """

    def __init__(
        self,
        where: str,
        own: frozenset[str],
        constants: frozenset[str],
        visible: Mapping[str, Any],
    ) -> None:
        self._where = where
        self._own = own
        self._constants = constants
        self._visible = visible
        self.bound: dict[str, Any] = {}

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Refuse the names of modules and of values that no kernel may use."""
        if node.id in self._own or not isinstance(node.ctx, ast.Load):
            return node
        value = self._visible.get(node.id)
        if isinstance(value, Foreign | language.Module):
            self._refuse(node)
        if node.id not in self._visible and node.id in language.REPLACED:
            node.id = _name(node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Resolve a path from a module; read a value's attribute by ``language.attribute``."""
        asked = node.value
        if node.attr == "value" and isinstance(asked, ast.Name) and asked.id in self._constants:
            return ast.copy_location(_call("held", [asked]), node)
        root, value = node, self._resolved(node)
        if isinstance(value, language.Module | Foreign):
            self._refuse(root)
        if value is not None:
            name = _name(f"object_{len(self.bound)}")
            self.bound[name] = value
            return ast.copy_location(ast.Name(id=name, ctx=ast.Load()), node)
        self.generic_visit(node)
        answer = _call("attribute", [node.value, ast.Constant(node.attr)])
        return ast.copy_location(answer, node)

    def _resolved(self, node: ast.expr) -> Any:
        """The object at a path from a module; None for an attribute of a value."""
        if isinstance(node, ast.Name) and node.id not in self._own:
            value = self._visible.get(node.id)
            return value if isinstance(value, language.Module | Foreign) else None
        if isinstance(node, ast.Attribute):
            outer = self._resolved(node.value)
            if isinstance(outer, Foreign):
                return outer
            if isinstance(outer, language.Module):
                part = outer.part(node.attr)
                return Foreign(node.attr) if part is None else part
        return None

    def _refuse(self, node: ast.expr) -> NoReturn:
        what = ast.unparse(node)
        raise KernelSourceError(
            f"{self._where}:{node.lineno}: '{what}' is not available in a kernel"
        )


def built(
    definition: ast.FunctionDef, filename: str, visible: Mapping[str, Any], semantic: Any = None
) -> Callable[..., Any]:
    """Build a function that runs a candidate's kernel, or without ``semantic`` one of constants.

    ``definition`` is a new tree with the line numbers of its file; it is changed. ``visible`` has
    the values of names in the kernel's module, and of defaults under ``<parameter>=``. The function
    sees these, the built-in functions that Triton allows, and nothing else of this process. Raises
    KernelSourceError for anything that Triton would not compile.
    """
    for node, what in language.unsupported(definition):
        line = getattr(node, "lineno", definition.lineno)
        raise KernelSourceError(f"{filename}:{line}: {what}, which Triton does not compile")
    definition.decorator_list, definition.returns = [], None
    arguments = definition.args
    if arguments.kwarg:
        what = "a parameter with '**'"
        where = f"{filename}:{definition.lineno}"
        raise KernelSourceError(f"{where}: {what}, which Triton does not compile")
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    if arguments.vararg:
        parameters.append(arguments.vararg)
    constants = frozenset(
        parameter.arg
        for parameter in parameters
        if parameter.annotation and "constexpr" in ast.unparse(parameter.annotation)
    )
    for parameter in parameters:
        parameter.annotation = None
    scope: dict[str, Any] = {"__builtins__": dict(language.BUILTINS)}
    _bind_defaults(arguments, visible, scope)
    mentioned = [node for node in ast.walk(definition) if isinstance(node, ast.Name)]
    stored = {node.id for node in mentioned if not isinstance(node.ctx, ast.Load)}
    own = frozenset(stored | {parameter.arg for parameter in parameters})
    counters = _counters(definition, visible)
    sealer = _Sealer(filename, own, constants, visible)
    definition.body = [sealer.visit(statement) for statement in definition.body]
    if semantic:
        _Rewriter(filename, 1, frozenset(), counters).visit(definition)
    _Parted().visit(definition)
    module = ast.fix_missing_locations(ast.Module(body=[definition], type_ignores=[]))
    sealed = {n: v for n, v in visible.items() if not isinstance(v, Foreign | language.Module)}
    scope |= sealed | sealer.bound
    scope |= {_name(key): value for key, value in helpers(semantic).items()}
    local: dict[str, Any] = {}
    exec(compile(module, filename, "exec"), scope, local)  # noqa: S102 - the kernel itself
    kernel: Callable[..., Any] = local[definition.name]
    return kernel


def _counters(definition: ast.FunctionDef, visible: Mapping[str, Any]) -> frozenset[str]:
    """The variables of loops at run time; the variables of static ranges are constants."""
    counted: dict[bool, set[str]] = {False: set(), True: set()}
    for node in ast.walk(definition):
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call):
            function = node.iter.func
            static = (
                visible.get(function.id) is tl.static_range
                if isinstance(function, ast.Name)
                else isinstance(function, ast.Attribute) and function.attr == "static_range"
            )
            if isinstance(node.target, ast.Name):
                counted[static].add(node.target.id)
    return frozenset(counted[False] - counted[True])


def _bind_defaults(
    arguments: ast.arguments, visible: Mapping[str, Any], scope: dict[str, Any]
) -> None:
    """Replace the expression of each default with its value from ``visible``."""

    def bound(parameter: ast.arg) -> ast.expr:
        name = _name(f"default_{parameter.arg}")
        scope[name] = visible.get(f"{parameter.arg}=")
        return ast.Name(id=name, ctx=ast.Load())

    positional = [*arguments.posonlyargs, *arguments.args]
    with_default = positional[len(positional) - len(arguments.defaults) :]
    arguments.defaults = [bound(parameter) for parameter in with_default]
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    arguments.kw_defaults = [bound(p) if default else None for p, default in pairs]


def rewritten(function: Callable[..., Any], semantic: Any) -> Callable[..., Any]:
    """Rewrite a function of Triton's library to run under Triton's rules.

    The result shares the globals of ``function``. Raises KernelSourceError if there is no source.
    """
    try:
        lines, first = inspect.getsourcelines(function)
    except OSError as error:
        raise KernelSourceError(f"{function.__name__}: a kernel must be in a file") from error
    filename = inspect.getsourcefile(function) or function.__code__.co_filename
    definition = ast.parse(textwrap.dedent("".join(lines))).body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    names = frozenset(name for name in _BUILTINS if name not in function.__globals__)
    module = ast.Module(body=[_Rewriter(filename, first, names).visit(definition)], type_ignores=[])
    ast.increment_lineno(ast.fix_missing_locations(module), first - 1)
    scope = function.__globals__
    scope.update({_name(key): value for key, value in helpers(semantic).items()})
    local: dict[str, Any] = {}
    exec(compile(module, filename, "exec"), scope, local)  # noqa: S102 - Triton's own
    kernel: Callable[..., Any] = local[definition.name]
    return kernel


def _name(helper: str) -> str:
    return f"{_PREFIX}{helper}__"


def _call(helper: str, arguments: list[ast.expr]) -> ast.Call:
    function = ast.Name(id=_name(helper), ctx=ast.Load())
    return ast.Call(func=function, args=arguments, keywords=[])


def _deferred(value: ast.expr) -> ast.Lambda:
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(args=nothing, body=value)
