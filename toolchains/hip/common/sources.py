"""A kernel's source and the headers that it may include, made ready for the compiler."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from faults import Position, SourceFault, source_fault
from layout import Laid, lay_out
from lexer import Chunk, Token, lex

MAIN = "kernel.hip"
"""The compiler's name for the source, whatever its file is called."""
HEADERS = "headers"
"""The directory of its own headers there."""

_DIRECTIVES = frozenset(
    {
        "define",
        "elif",
        "else",
        "endif",
        "error",
        "if",
        "ifdef",
        "ifndef",
        "include",
        "pragma",
        "undef",
        "warning",
    }
)
_PRAGMAS = frozenset({"once", "unroll", "nounroll", "STDC", "pack", "push_macro", "pop_macro"})
_WORD = re.compile(r"[\w$]+")
_COMPILER_PRAGMAS = frozenset({"loop", "fp", "unroll", "diagnostic", "ivdep"})


@dataclass(frozen=True)
class Sources:
    """The files that are compiled, by the name that the compiler sees."""

    files: dict[str, Laid]

    def first_mention(self, name: str) -> Position | None:
        """Where an identifier stands first; None if it is in no file."""
        found = self._mentions.get(name)
        return found[0].original(*found[1:]) if found else None

    @cached_property
    def _mentions(self) -> dict[str, tuple[Laid, int, int]]:
        # Once for all names: a source can have thousands of them asked for.
        mentions: dict[str, tuple[Laid, int, int]] = {}
        for laid in self.files.values():
            for number, line in enumerate(laid.text.split("\n"), start=1):
                for word in _WORD.finditer(line):
                    mentions.setdefault(word.group(), (laid, number, word.start() + 1))
        return mentions


@dataclass(frozen=True)
class Dialect:
    """How a platform reads HIP."""

    refuse: Callable[[Sequence[Chunk], str], None]
    """Raises ``SourceFault`` for what the platform does not have; the text is the file's path."""
    rewrite: Callable[[Sequence[Chunk], str], list[Chunk]]
    """Makes of HIP what the platform's compiler reads."""
    absent_library: Callable[[str], str | None]
    """The library of a header, where the platform has none."""


def load(source: Path, include: Sequence[Path], dialect: Dialect) -> Sources:
    """Read a source and, transitively, what it includes from its own or the given directories.

    Raises ``SourceFault`` for anything that the source may not do.
    """
    loader = _Loader([source.parent, *include], dialect)
    try:
        loader.add(MAIN, source, [])
    except RecursionError:
        raise SourceFault(f"{source}:1:1: error: includes or launches nest too deeply") from None
    return Sources(loader.files)


class _Loader:
    def __init__(self, roots: Sequence[Path], dialect: Dialect) -> None:
        self._dialect = dialect
        self._roots = [root.resolve() for root in roots]
        self._names: dict[Path, str] = {}
        self.files: dict[str, Laid] = {}

    def add(self, name: str, path: Path, included_from: Sequence[Position]) -> None:
        """Read one file under the compiler's name for it."""
        self._names[path.resolve()] = name
        shown = str(path)
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            raise SourceFault(f"{shown}:1:1: error: the source is not UTF-8") from None
        except OSError as error:
            if included_from:
                raise source_fault(included_from[-1], "error", f"cannot read '{shown}'") from None
            raise SourceFault(f"{shown}: error: cannot read it: {error.strerror}") from None
        chunks = lex(text, shown)
        self._dialect.refuse(chunks, shown)
        resolved = [self._directive(chunk, path) if chunk.directive else chunk for chunk in chunks]
        self.files[name] = lay_out(
            self._dialect.rewrite([c for c in resolved if c.tokens], shown), shown
        )

    def _directive(self, chunk: Chunk, path: Path) -> Chunk:
        words = [token.text for token in chunk.tokens[1:]]
        if not words:
            return chunk
        keyword = chunk.tokens[1]
        where = Position(str(path), keyword.line, keyword.column)
        if keyword.text not in _DIRECTIVES:
            raise source_fault(where, "unsupported", f"directive '#{keyword.text}'")
        if keyword.text == "include":
            return self._include(chunk, path, where)
        if keyword.text == "pragma":
            return _pragma(chunk, words, where)
        return self._answered(chunk, path)

    def _include(self, chunk: Chunk, path: Path, where: Position) -> Chunk:
        name = _header_name(chunk.tokens[2:])
        if name is None:
            raise source_fault(where, "unsupported", "#include of something other than a name")
        header, quoted = name
        place = Position(str(path), chunk.tokens[2].line, chunk.tokens[2].column)
        found = self._find(header, quoted=quoted, near=path.parent, where=place)
        if found is None:
            library = self._dialect.absent_library(header)
            if library is not None:
                raise source_fault(place, "unsupported", f"library '{library}' ({header})")
            return chunk
        if found.resolve() not in self._names:
            self.add(f"{HEADERS}/{len(self._names)}/{found.name}", found, [place])
        virtual = self._names[found.resolve()]
        literal = chunk.tokens[2]._replace(kind="literal", text=f'"{virtual}"')
        return Chunk((*chunk.tokens[:2], literal), directive=True)

    def _answered(self, chunk: Chunk, path: Path) -> Chunk:
        """``__has_include`` may ask for a header by name, in the directories that are searched.

        Of the task's own headers, which have other names for the compiler, the answer is 1. What
        is not among them the compiler knows.
        """
        tokens, kept = chunk.tokens, list[Token]()
        index = 0
        while index < len(tokens):
            token = tokens[index]
            index += 1
            kept.append(token)
            if token.text != "__has_include":
                continue
            where = Position(str(path), token.line, token.column)
            end = next((i for i in range(index, len(tokens)) if tokens[i].text == ")"), index)
            name = _header_name(tokens[index + 1 : end])
            if tokens[1].text not in {"if", "elif"} or name is None:
                raise source_fault(
                    where, "unsupported", "__has_include of something other than a name"
                )
            if self._find(name[0], quoted=name[1], near=path.parent, where=where):
                kept[-1] = token._replace(kind="literal", text="1")
                index = end + 1
        return Chunk(tuple(kept), chunk.directive)

    def _find(self, header: str, *, quoted: bool, near: Path, where: Position) -> Path | None:
        """The header among the task's own files; None when only the system may have it."""
        pure = PurePosixPath(header)
        if pure.is_absolute() or "\\" in header:
            raise source_fault(where, "error", f"'{header}' is outside the include directories")
        for directory in [near, *self._roots] if quoted else self._roots:
            candidate = directory / header
            if not _is_file(candidate):
                continue
            if any(candidate.resolve().is_relative_to(root) for root in self._roots):
                return candidate
            raise source_fault(where, "error", f"'{header}' is outside the include directories")
        if ".." in pure.parts:
            raise source_fault(where, "error", f"'{header}' is outside the include directories")
        return None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False  # no file can have this name: the source chooses it


def _header_name(tokens: Sequence[Token]) -> tuple[str, bool] | None:
    """The name in ``"name"`` or ``<name>``, and whether it is quoted."""
    if len(tokens) == 1 and tokens[0].kind == "literal" and tokens[0].text.startswith('"'):
        return tokens[0].text[1:-1], True
    if len(tokens) > 2 and tokens[0].text == "<" and tokens[-1].text == ">":
        inner = tokens[1:-1]
        if not any(token.spaced for token in inner):
            return "".join(token.text for token in inner), False
    return None


def allows_pragma(words: Sequence[str]) -> bool:
    """Whether a kernel may need the pragma of these words."""
    kind = words[0] if words else ""
    family = words[1] if kind in {"clang", "GCC"} and len(words) > 1 else ""
    return kind in _PRAGMAS or family in _COMPILER_PRAGMAS


def _pragma(chunk: Chunk, words: Sequence[str], where: Position) -> Chunk:
    """Keep the pragmas that a kernel may need; forget OpenMP, which HIP ignores too."""
    if words[1:2] == ["omp"]:
        return Chunk((), directive=True)
    if allows_pragma(words[1:]):
        return chunk
    raise source_fault(where, "unsupported", f"pragma '{' '.join(words[1:3])}'")
