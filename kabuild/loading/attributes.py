"""Attribute values: reads TOML values as a rule's attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from kabuild.base.errors import KabuildError
from kabuild.loading.platform_index import PlatformIndex
from kabuild.loading.values import check_value
from kabuild.model.action import Source
from kabuild.model.label import Label
from kabuild.rule.attr import Attr, AttributeProblem, PathStep, Type

PLATFORM = "{platform}"


class Files(Protocol):
    """The files that a target may name. All methods raise AttributeProblem for missing files."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory at ``path``."""
        ...

    def matches(self, pattern: str) -> bool:
        """Whether there is a file at a path, or one that a glob finds."""
        ...

    def file(self, path: str, at: tuple[PathStep, ...] = ()) -> Source:
        """The file at ``path``; ``at`` leads to it in the attribute, for errors."""
        ...

    def tree(self, path: str, at: tuple[PathStep, ...] = ()) -> Source:
        """The directory at ``path``."""
        ...

    def files(self, patterns: Sequence[str]) -> tuple[Source, ...]:
        """The files of all paths and globs, sorted, each once."""
        ...


class AttributeReader:
    """Reads the attributes of one package's targets. Raises AttributeProblem."""

    def __init__(self, files: Files, package: str, platforms: PlatformIndex) -> None:
        self._files = files
        self._package = package
        self._platforms = platforms
        self._readers: Mapping[Type, Callable[[Any], Any]] = {
            Type.LABEL: self._template,
            Type.LABELS: self._labels,
            Type.FILE: files.file,
            Type.FILES: files.files,
            Type.TREE: files.tree,
            Type.STRINGS: tuple,
            Type.PLATFORMS: self._platform_names,
            Type.BY_PLATFORM: self._by_platform,
            Type.TABLES: tuple,
        }

    def read(self, attr: Attr, value: Any) -> Any:
        """The declared ``value``, checked, as rules see it."""
        check_value(attr, value)
        read = self._readers.get(attr.type)
        return read(value) if read else value

    def default(self, attr: Attr) -> Any:
        """The value of an undeclared attribute.

        A default file or directory counts only if it exists. A default label with ``{platform}``
        stays text, since loading does not know the platform.
        """
        value = attr.default
        if attr.type is Type.LABEL:
            return self._template(value) if value is not None else None
        if attr.type is Type.LABELS:
            return self._labels(value)
        if attr.type in {Type.FILE, Type.TREE}:
            found = value is not None and self._files.exists(value)
            return self._readers[attr.type](value) if found else None
        if attr.type is Type.FILES:
            return self._files.files([path for path in value if self._files.matches(path)])
        return value

    def _platform_names(self, names: Sequence[str]) -> tuple[str, ...]:
        for index, name in enumerate(names):
            self._check_platform(name, index)
        return tuple(names)

    def _by_platform(self, table: Mapping[str, Any]) -> Mapping[str, Any]:
        for name in table:
            self._check_platform(name, name)
        return table

    def _check_platform(self, name: str, at: PathStep) -> None:
        if not self._platforms.knows(name):
            hint = self._platforms.hint(name)
            raise AttributeProblem(f"unknown platform '{name}'", (at,), hint)

    def _template(self, text: str, path: tuple[PathStep, ...] = ()) -> Label | str:
        """A label; one with ``{platform}`` stays text until the platform is known."""
        return text if PLATFORM in text else self._label(text, path)

    def _label(self, text: str, path: tuple[PathStep, ...] = ()) -> Label:
        try:
            return Label.parse(text, package=self._package)
        except KabuildError as error:
            raise AttributeProblem(error.message, path, error.hint, reason=error.reason) from None

    def _labels(self, texts: Sequence[str]) -> tuple[Label | str, ...]:
        return tuple(self._template(text, (index,)) for index, text in enumerate(texts))
