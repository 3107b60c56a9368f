"""The query language's text, as a tree.

    expression = term {("+" | "-" | "^" | "union" | "except" | "intersect") term}
    term       = word | function "(" argument {"," argument} ")" | "(" expression ")"

Operators have one precedence and apply from left to right. A word is a target pattern or a
plain argument; one with blanks or any of ``(),+^"'`` in it is quoted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from kabuild.base.errors import Reason, UsageError
from kabuild.base.suggest import suggest

OPERATORS = {"union": "+", "except": "-", "intersect": "^", "+": "+", "-": "-", "^": "^"}
FUNCTIONS = {
    "deps": ("expression", "depth?"),
    "rdeps": ("expression", "expression", "depth?"),
    "kind": ("regex", "expression"),
    "attr": ("word", "regex", "expression"),
    "filter": ("regex", "expression"),
    "tests": ("expression",),
    "somepath": ("expression", "expression"),
    "allpaths": ("expression", "expression"),
}
_TOKEN = re.compile(
    r"""\s*(?: (?P<mark>[(),+^]|-(?=\s|$|\(|"|'|/)) | "(?P<double>[^"]*)" | '(?P<single>[^']*)'"""
    r"""| (?P<word>[^\s(),+^"'-][^\s(),+^"']*) )""",
    re.VERBOSE,
)


MOST_LEVELS = 50
"""Calls and parentheses around each other."""

_SHOWN = 160


@dataclass(frozen=True)
class Word:
    """A pattern, or a plain argument of a function. ``at`` is its offset in the text."""

    text: str
    at: int


@dataclass(frozen=True)
class Call:
    """A function with arguments that fit its signature."""

    function: str
    arguments: tuple[Expression, ...]
    at: int


@dataclass(frozen=True)
class Binary:
    """Two sets put together; ``operator`` is ``+``, ``-`` or ``^``."""

    operator: str
    left: Expression
    right: Expression


Expression = Word | Call | Binary


@dataclass(frozen=True)
class _Token:
    text: str
    at: int
    is_mark: bool
    is_quoted: bool = False

    def is_operator(self) -> bool:
        return not self.is_quoted and self.text in OPERATORS


def parse_query(text: str) -> Expression:
    """The tree of a query. Raises UsageError(BAD_QUERY) with a caret under the mistake."""
    parser = _Parser(text)
    tree = parser.expression()
    parser.finish()
    return tree


def bad_query(text: str, at: int, message: str, hint: str = "") -> UsageError:
    """An error that shows the part of the query around the mistake, with a caret."""
    start = max(0, at - _SHOWN // 2)
    shown = text[start : start + _SHOWN]
    lines = [shown, " " * (at - start) + "^", *([hint] if hint else [])]
    return UsageError(Reason.BAD_QUERY, f"bad query: {message}", hint="\n".join(lines))


class _Parser:
    """Recursive descent over the tokens of one query."""

    def __init__(self, text: str) -> None:
        self._text = " ".join(text.split("\n")).rstrip()
        self._tokens = self._tokenise()
        self._at = 0
        self._level = 0

    def expression(self) -> Expression:
        """Terms, put together from left to right."""
        self._level += 1
        if self._level > MOST_LEVELS:
            self._fail(self._here(), f"it is nested in more than {MOST_LEVELS} levels")
        left = self._term()
        while (token := self._peek()) and token.is_operator():
            self._at += 1
            left = Binary(OPERATORS[token.text], left, self._term())
        self._level -= 1
        return left

    def finish(self) -> None:
        """Nothing may follow the expression."""
        if token := self._peek():
            self._fail(token.at, f"'{token.text}' follows a complete expression")

    def _tokenise(self) -> list[_Token]:
        tokens, at = [], 0
        while at < len(self._text):
            match = _TOKEN.match(self._text, at)
            if not match:
                start = at + len(self._text[at:]) - len(self._text[at:].lstrip())
                is_quote = self._text[start] in "\"'"
                self._fail(
                    start, "a quote is not closed" if is_quote else "'-' needs a blank after it"
                )
            kind = str(match.lastgroup)
            tokens.append(
                _Token(
                    match[kind],
                    match.start(kind),
                    is_mark=kind == "mark",
                    is_quoted=kind in {"double", "single"},
                )
            )
            at = match.end()
        return tokens

    def _peek(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _next(self, expected: str) -> _Token:
        token = self._peek()
        if token is None:
            self._fail(len(self._text), f"expected {expected}, found the end")
        self._at += 1
        return token

    def _term(self) -> Expression:
        token = self._next("a pattern or a function")
        if token.is_mark and token.text == "(":
            inner = self.expression()
            self._expect(")")
            return inner
        if token.is_mark or token.is_operator():
            self._fail(token.at, f"expected a pattern or a function, found '{token.text}'")
        following = self._peek()
        if following and following.is_mark and following.text == "(" and not token.is_quoted:
            return self._call(token)
        return Word(token.text, token.at)

    def _call(self, name: _Token) -> Call:
        """The arguments of a function; optional ones end in ``?``."""
        if name.text not in FUNCTIONS:
            known = f"functions: {', '.join(FUNCTIONS)}"
            self._fail(
                name.at, f"no function '{name.text}'", suggest(name.text, FUNCTIONS) or known
            )
        signature = FUNCTIONS[name.text]
        usage = f"{name.text}({', '.join(signature)})"
        self._expect("(")
        arguments: list[Expression] = []
        for index, kind in enumerate(signature):
            if kind.endswith("?") and not self._is_mark(","):
                break
            if index and not self._is_mark(","):
                self._fail(self._here(), "an argument is missing", usage)
            if index:
                self._expect(",")
            arguments.append(self.expression() if kind == "expression" else self._plain(kind))
        if not self._is_mark(")"):
            self._fail(self._here(), f"expected ')' after the arguments of {name.text}", usage)
        self._expect(")")
        return Call(name.text, tuple(arguments), name.at)

    def _plain(self, kind: str) -> Word:
        """A checked argument that is not an expression."""
        token = self._next(f"a {kind.rstrip('?')}")
        if token.is_mark:
            self._fail(token.at, f"expected a {kind.rstrip('?')}, found '{token.text}'", "quote it")
        if kind == "depth?" and not (token.text.isdecimal() and len(token.text) < 10):
            self._fail(token.at, f"'{token.text}' is not a depth", "a depth is a whole number")
        if kind == "regex":
            try:
                re.compile(token.text)
            except re.error as error:
                self._fail(token.at, f"'{token.text}' is not a valid regular expression: {error}")
        return Word(token.text, token.at)

    def _is_mark(self, mark: str) -> bool:
        token = self._peek()
        return token is not None and token.is_mark and token.text == mark

    def _here(self) -> int:
        token = self._peek()
        return token.at if token else len(self._text)

    def _expect(self, mark: str) -> None:
        token = self._next(f"'{mark}'")
        if not token.is_mark or token.text != mark:
            self._fail(token.at, f"expected '{mark}', found '{token.text}'")

    def _fail(self, at: int, message: str, hint: str = "") -> NoReturn:
        raise bad_query(self._text, at, message, hint)
