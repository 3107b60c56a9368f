"""Finds rules by kind, and imports only those in use.

The directory ``rules/<kind>`` holds the rule of that kind. A directory that defines other
kinds too lists them in ``kinds.txt`` beside its ``rule.py``, one a line, so that nothing is
imported to find a rule. The workspace's ``rules`` come before those that ship with kabuild.
"""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from kabuild.base.bytecode import own_package
from kabuild.base.errors import (
    LoadError,
    Position,
    Reason,
    UsageError,
    described,
    follows_interrupt,
)
from kabuild.base.suggest import suggest
from kabuild.loading.roots import builtin_root, find_workspace
from kabuild.loading.rule_failure import failure_position
from kabuild.loading.toolchain_rule import TOOLCHAIN
from kabuild.model.gate import Gates
from kabuild.rule.rule import Rule

RULES = "rules"
RULE_FILE = "rule.py"
KINDS_FILE = "kinds.txt"
_serial = itertools.count(1)
_LONGEST = 60
"""Letters in the name of a rule that is looked for as a directory."""


class RuleIndex:
    """The rules of one workspace.

    ``roots`` are the ``rules`` directories, first come first. Their files are imported
    below a package made up for this index, whose path is ``roots``: so rules import each
    other relatively, and the rules of two workspaces never mix.
    """

    @classmethod
    def around(cls, directory: Path) -> RuleIndex:
        """The rules of the workspace at or above a directory, and those that ship with kabuild."""
        try:
            own = [find_workspace(directory)]
        except UsageError:
            own = []
        return cls(tuple(dict.fromkeys(root / RULES for root in (*own, builtin_root()))))

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(roots)
        self._rules: dict[str, Rule] = {TOOLCHAIN.kind: TOOLCHAIN}
        self._directories: Mapping[str, str] | None = None
        self._package = ""

    def rule(self, kind: str, position: Position | None = None) -> Rule:
        """The rule of ``kind``, which is used at ``position``.

        Raises LoadError: UNKNOWN_RULE, or BAD_RULE where its file is wrong.
        """
        if kind not in self._rules:
            directory = self._find(kind)
            if directory is None:
                kinds = self.kinds()
                raise LoadError(
                    Reason.UNKNOWN_RULE,
                    f"no rule '{kind}'",
                    position=position,
                    hint=suggest(kind, kinds) or f"rules: {', '.join(kinds)}",
                )
            self._import(directory, kind)
        return self._rules[kind]

    def kinds(self) -> tuple[str, ...]:
        """All kinds, sorted; imports nothing."""
        return tuple(sorted({*self._listing(), TOOLCHAIN.kind}))

    def gates(self) -> Gates:
        """The gates that all rules declare, except those of broken files."""
        found = {}
        for kind in self.kinds():
            try:
                found[kind] = self.rule(kind).gates
            except LoadError as error:
                if follows_interrupt(error):
                    raise
        return Gates({kind: gates for kind, gates in found.items() if gates})

    def file(self, kind: str) -> Path | None:
        """The file that defines ``kind``; None for the built-in kind and unknown ones."""
        directory = self._find(kind)
        return self._rule_file(directory) if directory else None

    def files(self) -> frozenset[Path]:
        """The files of the rules in use, with the files that they import."""
        modules = [
            module
            for name, module in [*sys.modules.items()]
            if self._package and name.startswith(f"{self._package}.")
        ]
        return frozenset(Path(module.__file__) for module in modules if module.__file__)

    def _find(self, kind: str) -> str | None:
        """The directory of ``kind``; directories are listed only if its name does not tell."""
        if kind.isidentifier() and len(kind) <= _LONGEST and self._rule_file(kind):
            return kind
        return self._listing().get(kind)

    def _rule_file(self, directory: str) -> Path | None:
        files = (root / directory / RULE_FILE for root in self.roots)
        return next((file for file in files if file.is_file()), None)

    def _listing(self) -> Mapping[str, str]:
        """Directory by kind."""
        if self._directories is None:
            listing: dict[str, str] = {}
            for file in (f for root in self.roots for f in sorted(root.glob(f"*/{RULE_FILE}"))):
                name = file.parent.name
                kinds = file.with_name(KINDS_FILE)
                more = kinds.read_text().split() if kinds.is_file() else []
                for kind in (name, *more):
                    listing.setdefault(kind, name)
            self._directories = listing
        return self._directories

    def _import(self, directory: str, kind: str) -> None:
        """Import a directory's rule file and register every rule in it."""
        file = self._rule_file(directory)
        assert file is not None
        try:
            module = importlib.import_module(f"{self._package_name()}.{directory}.rule")
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:  # also SystemExit, which would pass for success
            raise LoadError(
                Reason.BAD_RULE,
                f"the rule file fails: {described(error)}",
                position=failure_position(error, self.roots, file),
            ) from error
        for rule in _rules_of(module, file):
            if self._find(rule.kind) != directory:
                raise _bad(
                    file,
                    f"kind '{rule.kind}' is not announced",
                    f"call the directory rules/{rule.kind}, or add a line '{rule.kind}' to "
                    f"rules/{directory}/{KINDS_FILE}",
                )
            self._rules.setdefault(rule.kind, rule)
        if kind not in self._rules:
            raise _bad(file, f"no rule of kind '{kind}'", f"define RULE = Rule(kind='{kind}', ...)")

    def _package_name(self) -> str:
        """The name of the synthetic package of all rules, made on first use."""
        if not self._package:
            name, roots = f"rules_{next(_serial)}", [str(root) for root in self.roots]
            self._package = own_package(name, "The rules of one workspace.", roots).__name__
            importlib.invalidate_caches()
        return self._package


def _rules_of(module: ModuleType, file: Path) -> tuple[Rule, ...]:
    """``RULE`` or ``RULES``."""
    single = getattr(module, "RULE", None)
    rules = getattr(module, "RULES", (single,) if single is not None else ())
    if not rules:
        raise _bad(file, "the file defines no RULE", "end it with RULE = Rule(...)")
    for rule in rules:
        if not isinstance(rule, Rule):
            raise _bad(file, f"RULE is a {type(rule).__name__}, expected a Rule")
    return tuple(rules)


def _bad(file: Path, message: str, hint: str = "") -> LoadError:
    return LoadError(Reason.BAD_RULE, message, position=Position(str(file)), hint=hint)
