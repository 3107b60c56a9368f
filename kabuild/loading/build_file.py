"""BUILD.toml files: from text to packages of validated targets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kabuild.base.errors import LoadError, LoadErrors, Position, Reason
from kabuild.base.printing import shortened
from kabuild.base.suggest import suggest
from kabuild.loading.attributes import AttributeReader
from kabuild.loading.toml_file import TomlFile
from kabuild.loading.values import describe
from kabuild.model.action import Root
from kabuild.model.label import Label
from kabuild.model.target import Target
from kabuild.rule.attr import Attr, AttributeProblem
from kabuild.rule.rule import COMMON_ATTRS, Rule

FindRule = Callable[[str, Position], Rule]
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=-]*")
_MOST_TAGS, _LONGEST_TAG = 100, 64
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*([A-Za-z0-9_-]+)[ \t]*\]\]", re.MULTILINE)
_RESERVED_NAMES = ("all",)


@dataclass(frozen=True)
class Package:
    """A directory with a BUILD.toml.

    Attributes:
        name: its path below the root; ``""`` for the root itself.
        root: the root that its files are relative to.
        targets: by name, in the order of the file.
        build_file: the BUILD.toml's name in messages.
    """

    name: str
    root: Root
    targets: Mapping[str, Target] = field(hash=False)
    build_file: str

    def find(self, name: str) -> Target | None:
        """The target called ``name``, or the one that has the sub-target ``name``."""
        if name in self.targets:
            return self.targets[name]
        owners = (self.targets.get(name[:at]) for at, char in enumerate(name) if char == ".")
        return next(
            (owner for owner in owners if owner and _part(owner, name) in owner.subtargets), None
        )

    def names(self) -> tuple[str, ...]:
        """The names of all targets and sub-targets."""
        return tuple(label.name for target in self.targets.values() for label in target.labels())


def _part(owner: Target, name: str) -> str:
    return name.removeprefix(f"{owner.label.name}.")


@dataclass(frozen=True)
class _Declaration:
    """One ``[[kind]]`` table as written."""

    kind: str
    index: int
    values: Mapping[str, Any] = field(hash=False)
    position: Position


def read_package(
    file: TomlFile, name: str, root: Root, reader: AttributeReader, find_rule: FindRule
) -> Package:
    """Turn the content of a BUILD.toml into a package.

    Raises LoadError, or LoadErrors if there are several problems.
    """
    errors: list[LoadError] = []
    targets: dict[str, Target] = {}
    taken: dict[str, Position] = {}
    for declaration in _declarations(file, errors):
        try:
            rule = find_rule(declaration.kind, declaration.position)
            label = _label(file, declaration, name)
            _claim_names(label, rule, declaration.position, taken)
            targets[label.name] = _target(file, declaration, label, rule, reader)
        except LoadError as error:
            errors.append(error)
    if errors:
        raise LoadErrors.combine(sorted(errors, key=_line))
    return Package(name, root, targets, file.shown)


def _line(error: LoadError) -> int:
    return error.position.line if error.position else 0


def _declarations(file: TomlFile, errors: list[LoadError]) -> Iterator[_Declaration]:
    lines = _header_lines(file)
    for kind, tables in file.values.items():
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            problem = f"'{kind}' is {describe(tables)}; a BUILD.toml holds [[kind]] tables only"
            hint = f"write [[{kind}]]" if isinstance(tables, dict) else ""
            position = file.position(kind)
            errors.append(LoadError(Reason.BAD_ATTRIBUTE, problem, position=position, hint=hint))
            continue
        for index, values in enumerate(tables):
            yield _Declaration(kind, index, values, Position(file.shown, lines[kind, index]))


def _header_lines(file: TomlFile) -> Mapping[tuple[str, int], int]:
    """The line of each declaration, by kind and index.

    A search for headers is enough, unless something else in the text looks like one: then
    their number differs from that of the tables, and the scanner decides.
    """
    lines: dict[tuple[str, int], int] = {}
    counts: dict[str, int] = {}
    line = at = 0
    for match in _HEADER.finditer(file.text):
        line += file.text.count("\n", at, match.start())
        at = match.start()
        index = counts.get(match[1], 0)
        counts[match[1]] = index + 1
        lines[match[1], index] = line + 1
    tables = {kind: len(value) for kind, value in file.values.items() if isinstance(value, list)}
    if counts == tables:
        return lines
    return {
        (kind, index): file.position(kind, index).line
        for kind, count in tables.items()
        for index in range(count)
    }


def _label(file: TomlFile, declaration: _Declaration, package: str) -> Label:
    name = declaration.values.get("name")
    if name is None:
        raise LoadError(
            Reason.MISSING_ATTRIBUTE,
            f"a {declaration.kind} without a name",
            position=declaration.position,
            hint='add name = "..."',
        )
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _RESERVED_NAMES:
        raise LoadError(
            Reason.BAD_ATTRIBUTE,
            f"{describe(name)} is not a valid target name",
            position=file.position(declaration.kind, declaration.index, "name"),
            hint="names are letters, digits and _.+=- and start with none of .+=-",
        )
    return Label(package, name)


def _claim_names(label: Label, rule: Rule, position: Position, taken: dict[str, Position]) -> None:
    """A name is unique: not used twice, nor by a sub-target of another target."""
    names = (label.name, *(label.sub(part).name for part in rule.parts))
    for name in names:
        if name in taken:
            raise LoadError(
                Reason.DUPLICATE_TARGET,
                f"':{name}' is declared twice",
                position=position,
                hint=f"first declared at {taken[name]}",
            )
    taken.update(dict.fromkeys(names, position))


def _target(
    file: TomlFile, declaration: _Declaration, label: Label, rule: Rule, reader: AttributeReader
) -> Target:
    problems = list(_surplus(declaration, rule))
    attrs: dict[str, Any] = {}
    for name, attribute in rule.attrs.items():
        try:
            attrs[name] = _attribute(declaration, name, attribute, reader)
        except AttributeProblem as problem:
            problems.append(problem)
    if not problems:
        try:
            rule.check(attrs)
        except AttributeProblem as problem:
            problems.append(problem)
    if problems:
        raise LoadErrors.combine([_located(file, declaration, problem) for problem in problems])
    tags = tuple(declaration.values.get("tags", ()))
    return Target(label, rule.kind, attrs, declaration.position, rule.parts, tags)


def _surplus(declaration: _Declaration, rule: Rule) -> Iterator[AttributeProblem]:
    """Problems with common attributes, and attributes that this kind lacks."""
    known = (*COMMON_ATTRS, *rule.attrs)
    for name in declaration.values:
        if name not in known:
            yield AttributeProblem(
                f"{rule.kind} has no attribute '{name}'",
                (name,),
                suggest(name, known) or f"attributes: {', '.join(known)}",
                reason=Reason.UNKNOWN_ATTRIBUTE,
            )
    tags = declaration.values.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        yield AttributeProblem(
            f"tags: found {describe(tags)}, expected a list of strings", ("tags",)
        )
        return
    if len(tags) > _MOST_TAGS:
        yield AttributeProblem(f"{len(tags)} tags: at most {_MOST_TAGS}", ("tags",))
        return
    for index, tag in enumerate(tags):
        if not _is_tag(tag):
            said = shortened(tag, _LONGEST_TAG)
            yield AttributeProblem(
                f"{said!r} is not a valid tag",
                ("tags", index),
                f"a tag begins with a letter or digit, and has no comma and at most "
                f"{_LONGEST_TAG} characters",
            )


def _is_tag(text: str) -> bool:
    """Whether ``--test_tag_filters`` can name it, where commas separate and ``-`` excludes tags."""
    plain = text.isprintable() and text == text.strip() and "," not in text
    return plain and 0 < len(text) <= _LONGEST_TAG and text[0].isalnum()


def _attribute(
    declaration: _Declaration, name: str, attribute: Attr, reader: AttributeReader
) -> Any:
    """The value of one attribute. Raises AttributeProblem with the path from the target."""
    if name not in declaration.values:
        if not attribute.required:
            return reader.default(attribute)
        raise AttributeProblem(
            f"{declaration.kind} '{declaration.values['name']}' lacks the attribute '{name}'",
            hint=f"{name}: {attribute.doc}",
            reason=Reason.MISSING_ATTRIBUTE,
        )
    try:
        return reader.read(attribute, declaration.values[name])
    except AttributeProblem as problem:
        raise AttributeProblem(
            f"attribute '{name}': {problem.message}",
            (name, *problem.path),
            problem.hint,
            reason=problem.reason,
        ) from None


def _located(file: TomlFile, declaration: _Declaration, problem: AttributeProblem) -> LoadError:
    position = file.position(declaration.kind, declaration.index, *problem.path)
    return LoadError(problem.reason, problem.message, position=position, hint=problem.hint)
