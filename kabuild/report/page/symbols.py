"""Kernels' names as people write them: ``rows<float, 256>`` for ``_Z4rowsIfLi256EEvPKT_``.

Only names and template arguments are read (Itanium C++ ABI, 5.1); parameters are left out, and a
symbol with anything else in it stays as it is.
"""

from __future__ import annotations

_LONGEST = 400
"""Substitutions can double a name with every few letters: symbols are a candidate's text."""

_BUILTIN = {
    "v": "void",
    "b": "bool",
    "c": "char",
    "a": "signed char",
    "h": "unsigned char",
    "s": "short",
    "t": "unsigned short",
    "i": "int",
    "j": "unsigned",
    "l": "long",
    "m": "unsigned long",
    "x": "long long",
    "y": "unsigned long long",
    "f": "float",
    "d": "double",
    "Dh": "half",
    "DF16_": "_Float16",
    "DF16b": "__bf16",
}
_AROUND = {"P": "*", "R": "&", "O": "&&", "K": " const"}
_ANONYMOUS = "_GLOBAL__N_"


def readable(symbol: str) -> str:
    """The name of a function without its parameters, or ``symbol`` where it is not understood."""
    if not symbol.startswith("_Z"):
        return symbol
    try:
        return _Symbol(symbol).name() or symbol
    except (ValueError, IndexError, RecursionError):
        return symbol


class _Symbol:
    """A mangled name, read from left to right. Methods raise ValueError and IndexError."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = len("_Z")
        self._known: list[str] = []

    def name(self) -> str:
        """A name in its namespaces, with its template arguments."""
        if self._take("N"):
            return self._nested()
        found = self._referred() if self._take("S") else self._learn(self._source())
        return self._learn(found + self._arguments()) if self._take("I") else found

    def _nested(self) -> str:
        found = ""
        while not self._take("E"):
            if self._take("S"):
                found = self._referred()
            elif self._take("I"):
                found = self._learn(found + self._arguments())
            else:
                found = self._learn("::".join(part for part in (found, self._source()) if part))
        return found

    def _arguments(self) -> str:
        """Behind an ``I``, up to its ``E``."""
        found: list[str] = []
        while not self._take("E"):
            found.append(self._literal() if self._take("L") else self._type())
        return f"<{', '.join(found)}>"

    def _literal(self) -> str:
        kind = self._type()
        end = self._text.index("E", self._at)
        value, self._at = self._text[self._at : end], end + 1
        number = -int(value[1:]) if value.startswith("n") else int(value)
        return ("false", "true")[number] if kind == "bool" else str(number)

    def _type(self) -> str:
        for mark, name in _BUILTIN.items():
            if self._take(mark):
                return name
        for mark, sign in _AROUND.items():
            if self._take(mark):
                return self._learn(self._type() + sign)
        return self.name()

    def _referred(self) -> str:
        """Behind an ``S``: what was named before. ``S_`` is the first, ``S0_`` the second."""
        end = self._text.index("_", self._at)
        digits, self._at = self._text[self._at : end], end + 1
        return self._known[int(digits, 36) + 1 if digits else 0]

    def _source(self) -> str:
        """A plain name behind its length; an anonymous namespace has none."""
        start = self._at
        while self._text[self._at].isdecimal():
            self._at += 1
        size = int(self._text[start : self._at])
        found = self._text[self._at : self._at + size]
        if len(found) < size:
            raise ValueError("it ends early")
        self._at += size
        return "" if found.startswith(_ANONYMOUS) else found

    def _learn(self, found: str) -> str:
        if len(found) > _LONGEST:
            raise ValueError("it is too long for people")
        self._known.append(found)
        return found

    def _take(self, mark: str) -> bool:
        taken = self._text.startswith(mark, self._at)
        self._at += len(mark) if taken else 0
        return taken
