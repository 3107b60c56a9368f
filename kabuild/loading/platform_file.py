"""``platform.toml`` and ``architectures.toml``: from text to a validated ``PlatformSpec``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kabuild.base.errors import KabuildError, LoadError, Reason
from kabuild.base.suggest import suggest
from kabuild.loading.roots import PLATFORM_FILE
from kabuild.loading.toml_file import TomlFile, read_toml
from kabuild.loading.values import check_value, describe
from kabuild.model.label import Label
from kabuild.model.platform import Installation, Package, PlatformSpec
from kabuild.rule import attr
from kabuild.rule.attr import Attr, AttributeProblem

ARCHITECTURES_FILE = "architectures.toml"
_ARCHITECTURE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_VARIANTS = "variants"
_INSTALLATION = ("program", "use", "requires")
_PACKAGE = ("name", "use")


def _check_pattern(text: str) -> None:
    try:
        re.compile(text)
    except re.error as error:
        raise AttributeProblem(f"'{text}' is not a regular expression: {error}") from None


def _check_installations(tables: list[Mapping[str, Any]]) -> None:
    for index, table in enumerate(tables):
        requires = table.get("requires")
        texts = all(isinstance(table.get(name), str) for name in ("program", "use"))
        files = isinstance(requires, list) and all(isinstance(item, str) for item in requires)
        if {*table} != {*_INSTALLATION} or not texts or not files:
            raise AttributeProblem(
                "an installation has a program, a use, and a list of files that it requires",
                (index,),
                'such as program = "cc", use = "to adopt", requires = ["bin/cc"]',
            )


def _check_packages(tables: list[Mapping[str, Any]]) -> None:
    for index, table in enumerate(tables):
        texts = all(isinstance(value, str) for value in table.values())
        if {*table} != {*_PACKAGE} or not texts:
            raise AttributeProblem(
                "a package has a name and a use", (index,), 'such as name = "torch", use = "judges"'
            )


def _check_label(text: str) -> None:
    if not text:
        return
    try:
        Label.parse(text)
    except KabuildError as error:
        raise AttributeProblem(error.message, (), error.hint) from None


ATTRS: Mapping[str, Attr] = {
    "doc": attr.string("One sentence that describes it.", required=True),
    "device": attr.string("The common name of one of its devices.", default=""),
    "example": attr.string("One of its architectures, for messages.", default=""),
    "visible": attr.strings("The variables by which users hide devices."),
    "untried": attr.string("Parts that were never tested on hardware.", default=""),
    "pytorch": attr.string(
        "A pattern of the versions of PyTorch that compute on its devices.",
        default="",
        check=_check_pattern,
    ),
    "pytorch_build": attr.string("The name of such a build of PyTorch.", default=""),
    "installations": attr.tables(
        "Compilers that can be adopted for it.", check=_check_installations
    ),
    "packages": attr.tables("Python packages that it can use.", check=_check_packages),
    "groups": attr.strings("The groups whose members may use its devices."),
    "resource": attr.string("Its devices, as Kubernetes names them.", default=""),
    "profiler": attr.string(
        "The toolchain that reads its devices' counters.", default="", check=_check_label
    ),
    "tf32": attr.boolean(
        "Whether PyTorch's convolutions and Triton's products compute f32 in TF32 by default."
    ),
    "ahead": attr.boolean(
        "Whether Triton's kernels can be compiled for it without a device, and handed on."
    ),
}


def read_platform(directory: Path, shown: str, *, root: str) -> PlatformSpec:
    """The declaration of a directory below ``root``, called ``shown`` in messages.

    Raises LoadError.
    """
    name = directory.name
    file = read_toml(directory / PLATFORM_FILE, f"{shown}/{PLATFORM_FILE}")
    for key in file.values:
        if key not in ATTRS:
            hint = suggest(key, ATTRS) or f"known: {', '.join(ATTRS)}"
            raise _error(file, key, f"unknown key '{key}'", hint, Reason.UNKNOWN_KEY)
    values = {key: _value(file, key, attribute) for key, attribute in ATTRS.items()}
    values["architectures"] = _architectures(directory, shown)
    if values["example"] and values["example"] not in values["architectures"]:
        what = f"unknown {name} architecture '{values['example']}'"
        raise _error(file, "example", what, f"declare it in {ARCHITECTURES_FILE}")
    values["installations"] = tuple(
        Installation(item["program"], item["use"], tuple(item["requires"]))
        for item in values["installations"]
    )
    values["packages"] = tuple(Package(**item) for item in values["packages"])
    return PlatformSpec(name, root, **{**values, "device": values["device"] or f"{name} device"})


def _value(file: TomlFile, key: str, attribute: Attr) -> Any:
    if key not in file.values:
        if attribute.required:
            what = f"the platform has no '{key}'"
            raise _error(file, "", what, f"{key}: {attribute.doc}", Reason.MISSING_ATTRIBUTE)
        return attribute.default
    try:
        check_value(attribute, file.values[key])
    except AttributeProblem as problem:
        position = file.position(key, *problem.path)
        what = f"'{key}': {problem.message}"
        raise LoadError(problem.reason, what, position=position, hint=problem.hint) from None
    value = file.values[key]
    return tuple(value) if isinstance(value, list) else value


def _architectures(directory: Path, shown: str) -> Mapping[str, str]:
    """By name, the architecture that devices report; empty without the file."""
    try:
        file = read_toml(directory / ARCHITECTURES_FILE, f"{shown}/{ARCHITECTURES_FILE}")
    except FileNotFoundError:
        return {}
    found: dict[str, str] = {}
    for name, figures in file.values.items():
        if not isinstance(figures, dict):
            raise _error(file, name, f"'{name}' is {describe(figures)}, expected a table")
        variants = figures.get(_VARIANTS, [])
        if not isinstance(variants, list) or not all(isinstance(item, str) for item in variants):
            what = f"'{_VARIANTS}' of '{name}' must be a list of strings"
            raise _error(file, name, what)
        for one in (name, *variants):
            if not _ARCHITECTURE.fullmatch(one) or one in found:
                problem = "is declared twice" if one in found else "is not an architecture's name"
                raise _error(file, name, f"'{one}' {problem}")
            found[one] = name
    return found


def _error(
    file: TomlFile, key: str, message: str, hint: str = "", reason: Reason = Reason.BAD_ATTRIBUTE
) -> LoadError:
    position = file.position(key) if key else file.position()
    return LoadError(reason, message, position=position, hint=hint)
