"""The source of a candidate module: parsed, and normalised so that only meaning remains."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from terms.reading import can_blame_source, own_time, told
from terms.reasons import Reason

MAX_BYTES = 1 << 20
_MOST_REFUSAL = 500
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class Refusal(Exception):  # noqa: N818 - it is a verdict on the candidate, not an error of ours
    """<file>:<line>: <what is wrong>; `reason` is the verdict's."""

    def __init__(self, reason: Reason, summary: str, detail: str = "") -> None:
        self.reason = reason
        self.summary = summary
        self.detail = detail
        super().__init__(summary)


class MachineFault(Exception):  # noqa: N818 - as judges call it
    """The machine failed, so that nothing is known about the candidate."""


@dataclass(frozen=True)
class Source:
    """A module that is valid Python: its file name as people see it, text, and tree."""

    name: str
    text: str
    tree: ast.Module

    def refuse(self, node: ast.AST, reason: Reason, what: str) -> Refusal:
        """Make a refusal that points at the line of `node`."""
        line = getattr(node, "lineno", 1)
        lines = lines_of(self.text)
        shown = lines[line - 1] if 0 < line <= len(lines) else ""
        return Refusal(reason, f"{self.name}:{line}: {what}", shown.rstrip())


def lines_of(text: str) -> list[str]:
    """The lines as Python counts them, with their ends: not at a form feed, as ``str`` does."""
    return _LINE.findall(text)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """In here a source is read: that this breaks, or takes too long, is Refusal of the source.

    Raises MachineFault if a trivial source cannot be read either.
    """
    try:
        with own_time():
            yield
    except OSError:
        raise  # no source names files here
    except Exception as error:
        if not can_blame_source(error):
            raise
        try:
            trivial = Source(name, "pass\n", ast.parse("pass\n"))
            original_lines(trivial, normalised(trivial))
        except Exception as broken:  # noqa: BLE001 - whatever it is
            raise MachineFault(f"no source can be read: {broken!r}") from error
        raise Refusal(Reason.COMPILE_ERROR, f"{name}: {told(error)}") from None


def check_handed_in(path: Path) -> None:
    """Raise Refusal if the session has replaced an agent's file by its reason to refuse it.

    It leaves one line there: ``hand_in.py`` of the rule ``agent``.
    """
    head = f"# {path.name} was not handed in: ".encode()
    with path.open("rb") as file:
        text = file.read(_MOST_REFUSAL)
    if text.startswith(head) and text.find(b"\n") == len(text) - 1:
        why = text[len(head) :].decode(errors="replace").strip()
        raise Refusal(Reason.NOT_HANDED_IN, f"the agent's {path.name} was refused: {why}")


def read_source(path: Path) -> Source:
    """Read and parse the module at `path`. Raises Refusal if it is not Python."""
    data = path.read_bytes()
    if len(data) > MAX_BYTES:
        raise Refusal(Reason.COMPILE_ERROR, f"{path.name}: {len(data)} bytes, at most {MAX_BYTES}")
    try:
        text = data.decode("utf-8-sig")
        return Source(path.name, text, ast.parse(text, path.name))
    except SyntaxError as error:
        line = error.lineno or 1
        caret = " " * max((error.offset or 1) - 1, 0) + "^"
        detail = f"{(error.text or '').rstrip()}\n{caret}"
        raise Refusal(Reason.COMPILE_ERROR, f"{path.name}:{line}: {error.msg}", detail) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise Refusal(Reason.COMPILE_ERROR, f"{path.name}: not valid Python: {error}") from None


def normalised(source: Source) -> str:
    """Give the module without comments, docstrings and formatting.

    Equal text for sources that differ in nothing else. Raises Refusal for the rare expression
    that Python itself cannot write down again.
    """
    try:
        return ast.unparse(_stripped(source)) + "\n"
    except (ValueError, RecursionError) as error:
        raise Refusal(
            Reason.COMPILE_ERROR, f"{source.name}: cannot be normalised: {error}"
        ) from None


def original_lines(source: Source, text: str) -> list[int]:
    """For each line of the normalised ``text``, the line of the source that it was.

    A line is where its first node was; one without its own node, such as ``else:``, is where
    the line before it was. Empty for a text that cannot be read again.
    """
    found: dict[int, int] = {}
    try:
        pairs = zip(ast.walk(ast.parse(text)), ast.walk(_stripped(source)), strict=False)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    for new, old in pairs:
        if type(new) is not type(old):
            break  # an unpaired line keeps the place of the line before it
        if isinstance(new, ast.stmt | ast.expr):
            found.setdefault(new.lineno, getattr(old, "lineno", 1))
    lines: list[int] = []
    for number in range(1, text.count("\n") + 1):
        lines.append(found.get(number, lines[-1] if lines else 1))
    return lines


def _stripped(source: Source) -> ast.Module:
    """A copy without comments and docstrings: positions in the original serve the checks."""
    tree: ast.Module = _Stripper().visit(ast.parse(source.text, source.name))
    return ast.fix_missing_locations(tree)


class _Stripper(ast.NodeTransformer):
    """Drops statements that are a bare constant: docstrings, and strings used as comments."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        # Whatever held a statement needs one, but for the module: `finally:` as well as a body.
        held = [name for name in ("body", "orelse", "finalbody") if _is_block(node, name)]
        super().generic_visit(node)
        for name in held:
            if getattr(node, name) == [] and not isinstance(node, ast.Module):
                setattr(node, name, [ast.Pass()])
        return node


def _is_block(node: ast.AST, name: str) -> bool:
    """Whether the node has statements there, not none and not the expression of a ``lambda``."""
    return bool(statements := getattr(node, name, None)) and isinstance(statements, list)
