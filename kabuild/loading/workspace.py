"""Workspaces: directories with a WORKSPACE.toml, and its content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kabuild.base.errors import KabuildError, LoadError, Position, Reason, UsageError
from kabuild.base.sizes import parse_size
from kabuild.base.suggest import suggest
from kabuild.base.version import UPDATE, __version__
from kabuild.loading.repository import TABLE, Repository, read_repositories
from kabuild.loading.roots import WORKSPACE_FILE
from kabuild.loading.toml_file import TomlFile, read_toml
from kabuild.model.label import Label

AGENTS_PACKAGE = "toolchains/agents"
DEFAULT_AGENT = "expert"
_TABLES: Mapping[str, tuple[str, ...]] = {
    "defaults": ("platform", "agent", "policy"),
    "scoring": ("policy", "salt", "records"),
    "cache": ("size",),
    "remote": ("trusted_keys", "pools"),
}
_OPEN_TABLES = ("agents", "toolchains", "config")
_TEXTS = ("name", "kabuild")


@dataclass(frozen=True)
class Workspace:
    """The content of WORKSPACE.toml.

    Attributes:
        root: the absolute directory of ``//``.
        name: for people. platform, agent, policy, salt: defaults of the flags; None if the file
            does not set them.
        agents: short names of agents.
        toolchains: replacements of targets.
        configs: flags by the name of the ``[config.NAME]`` table.
        records: the file of records, relative to ``root``; None if the file names none.
        cache_size: the store's limit in bytes, unless the user sets one.
        trusted_keys: the file with the keys of trusted signers, relative to ``root``.
        pools: properties of a fleet's workers, by the kind of action that they run.
        repositories: external repositories by name.
        file: the file itself, for positions.
    """

    root: Path
    name: str
    file: TomlFile = field(compare=False, repr=False)
    platform: str | None = None
    agent: str | None = None
    policy: str | None = None
    salt: str | None = None
    records: str | None = None
    agents: Mapping[str, Label] = field(default_factory=dict, hash=False)
    toolchains: Mapping[Label, Label] = field(default_factory=dict, hash=False)
    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    cache_size: int | None = None
    trusted_keys: str | None = None
    pools: Mapping[str, Mapping[str, str]] = field(default_factory=dict, hash=False)
    repositories: Mapping[str, Repository] = field(default_factory=dict, hash=False)

    def agent_label(self, name: str) -> Label:
        """The target of an agent's name.

        A label means itself, an alias its entry in ``[agents]``, any other name the target of that
        name in ``//toolchains/agents``. Raises UsageError(UNKNOWN_AGENT).
        """
        if name in self.agents:
            return self.agents[name]
        try:
            return Label.parse(name if "/" in name else f"//{AGENTS_PACKAGE}:{name}")
        except UsageError:
            raise UsageError(
                Reason.UNKNOWN_AGENT,
                f"'{name}' is not an agent",
                hint=suggest(name, self.agents) or "agents are labels or names of [agents]",
            ) from None

    def config(self, name: str) -> Mapping[str, Any]:
        """The flags of ``--config=NAME``. Raises UsageError(UNKNOWN_CONFIG)."""
        if name not in self.configs:
            known = ", ".join(sorted(self.configs)) or "none"
            raise UsageError(
                Reason.UNKNOWN_CONFIG,
                f"{self.file.shown} has no [config.{name}]",
                hint=suggest(name, self.configs) or f"it has: {known}",
            )
        return self.configs[name]

    def position(self, *path: str | int) -> Position:
        """The position of a part of WORKSPACE.toml."""
        return self.file.position(*path)

    def package_of(self, directory: Path) -> str:
        """The package path of a directory of the workspace; ``""`` for its root."""
        path = directory.relative_to(self.root).as_posix()
        return "" if path == "." else path


def load_workspace(root: Path) -> Workspace:
    """Read ``root``/WORKSPACE.toml. Raises LoadError with the line that is wrong."""
    return parse_workspace(root, read_toml(root / WORKSPACE_FILE, WORKSPACE_FILE))


def parse_workspace(root: Path, file: TomlFile) -> Workspace:
    """The workspace at ``root`` if its WORKSPACE.toml were ``file``. Raises LoadError."""
    _check_version(file)
    _check_shape(file)
    values = file.values
    if "name" not in values:
        raise _error(
            file, (), "the workspace has no name", Reason.MISSING_ATTRIBUTE, 'add name = "mine"'
        )
    defaults, scoring = values.get("defaults", {}), values.get("scoring", {})
    if "policy" in defaults and "policy" in scoring:
        raise _error(file, ("scoring", "policy"), "the policy is set twice: here and in [defaults]")
    return Workspace(
        root=root,
        name=values["name"],
        file=file,
        platform=defaults.get("platform"),
        agent=defaults.get("agent"),
        policy=scoring.get("policy", defaults.get("policy")),
        salt=scoring.get("salt"),
        records=scoring.get("records"),
        agents={name: _label(file, ("agents", name)) for name in values.get("agents", {})},
        toolchains=_toolchains(file),
        configs=values.get("config", {}),
        cache_size=_cache_size(file),
        trusted_keys=values.get("remote", {}).get("trusted_keys"),
        pools=values.get("remote", {}).get("pools", {}),
        repositories=read_repositories(file, root),
    )


def _check_version(file: TomlFile) -> None:
    """Check the version first: a file for a newer kabuild may hold unknown keys."""
    required = file.values.get("kabuild", ">=0")
    number = required[2:].strip() if isinstance(required, str) else ""
    parts = number.split(".")
    if not str(required).startswith(">=") or not all(part.isdecimal() for part in parts):
        raise _error(
            file, ("kabuild",), f"{required!r} is not a version", hint='write kabuild = ">=0.1"'
        )
    wanted = [int(part) for part in parts]
    if [int(part) for part in __version__.split(".")] < wanted:
        raise _error(
            file,
            ("kabuild",),
            f"this workspace needs kabuild {number} or later; this is {__version__}",
            Reason.VERSION_TOO_OLD,
            UPDATE,
        )


def _check_shape(file: TomlFile) -> None:
    known = (*_TEXTS, *_TABLES, *_OPEN_TABLES, TABLE)
    for key, value in file.values.items():
        if key not in known:
            raise _unknown(file, (key,), known)
        if key in _TEXTS:
            _check_text(file, (key,), value)
            continue
        if key == TABLE:  # a list of tables with its own reader
            continue
        if not isinstance(value, dict):
            raise _error(file, (key,), f"'{key}' must be a table: write [{key}]")
        for name, part in value.items():
            if key in _TABLES and name not in _TABLES[key]:
                raise _unknown(file, (key, name), _TABLES[key])
            if key == "config":
                _check_flags(file, name, part)
            elif (key, name) == ("remote", "pools"):
                _check_pools(file, part)
            else:
                _check_text(file, (key, name), part)


def _check_text(file: TomlFile, path: tuple[str, ...], value: Any) -> None:
    if not isinstance(value, str) or not value:
        what = f"'{path[-1]}' must be a string that is not empty, got {value!r:.60}"
        raise _error(file, path, what)


def _check_flags(file: TomlFile, name: str, flags: Any) -> None:
    """Flags are scalars or lists of them; the command line knows which flags exist."""
    if not isinstance(flags, dict):
        raise _error(file, ("config", name), f"'{name}' must be a table: [config.{name}]")
    for flag, value in flags.items():
        items = value if isinstance(value, list) else [value]
        if not all(isinstance(item, str | int | float) for item in items):
            raise _error(
                file,
                ("config", name, flag),
                f"flag '{flag}' must be a string, a number, true or false, or a list of these",
            )


def _check_pools(file: TomlFile, pools: Any) -> None:
    """Pools are tables of texts by the kind of action."""
    path = ("remote", "pools")
    if not isinstance(pools, dict):
        raise _error(file, path, "'pools' must be a table: [remote.pools]")
    for kind, routing in pools.items():
        if not isinstance(routing, dict):
            example = f'"{kind}" = {{ pool = "NAME" }}'
            what = f"'{kind}' must be a table of workers' properties"
            raise _error(file, (*path, kind), what, hint=f"write {example}")
        for name, value in routing.items():
            _check_text(file, (*path, kind, name), value)


def _cache_size(file: TomlFile) -> int | None:
    size = file.values.get("cache", {}).get("size")
    try:
        return None if size is None else parse_size(size)
    except ValueError as error:
        raise _error(file, ("cache", "size"), str(error)) from None


def _toolchains(file: TomlFile) -> Mapping[Label, Label]:
    """Replacements, in one step: a replacement is not replaced itself."""
    replacements: dict[Label, Label] = {}
    for text in file.values.get("toolchains", {}):
        path = ("toolchains", text)
        replacements[_parse(file, path, text)] = _label(file, path)
    for replaced, replacement in replacements.items():
        if replacement in replacements:
            raise _error(
                file,
                ("toolchains",),
                f"{replaced.short} is replaced by {replacement.short}, which is replaced itself",
            )
    return replacements


def _label(file: TomlFile, path: tuple[str, str]) -> Label:
    return _parse(file, path, file.values[path[0]][path[1]])


def _parse(file: TomlFile, path: tuple[str, ...], text: str) -> Label:
    try:
        return Label.parse(text)
    except KabuildError as error:
        raise _error(file, path, error.message, error.reason, error.hint) from None


def _unknown(file: TomlFile, path: tuple[str, ...], known: tuple[str, ...]) -> LoadError:
    where = f" in [{path[0]}]" if len(path) > 1 else ""
    hint = suggest(path[-1], known) or f"known: {', '.join(known)}"
    return _error(file, path, f"unknown key '{path[-1]}'{where}", Reason.UNKNOWN_KEY, hint)


def _error(
    file: TomlFile,
    path: tuple[str, ...],
    message: str,
    reason: Reason = Reason.BAD_ATTRIBUTE,
    hint: str = "",
) -> LoadError:
    return LoadError(reason, message, position=file.position(*path), hint=hint)
