"""The indexes of this user's pip, from its configuration files and environment."""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kabuild.base.user_dirs import home_directory

DEFAULT_INDEX = "https://pypi.org/simple"
_SECTIONS = ("global", "install", "download")


@dataclass(frozen=True)
class PipSettings:
    """The simple indexes to ask, in order, and the certificates to trust (a file, or "")."""

    indexes: tuple[str, ...] = (DEFAULT_INDEX,)
    certificates: str = ""


def pip_settings(
    env: Mapping[str, str] = os.environ, files: tuple[Path, ...] | None = None
) -> PipSettings:
    """The settings of pip: files of the system, the user and the environment, then variables.

    ``files`` replaces pip's own files, least important first.
    """
    values: dict[str, str] = {}
    for file in _files(env) if files is None else files:
        values.update(_read(file))
    for name in ("index-url", "extra-index-url", "cert", "no-index"):
        if given := env.get(f"PIP_{name.upper().replace('-', '_')}"):
            values[name] = given
    first = values.get("index-url", DEFAULT_INDEX).split()
    if values.get("no-index", "").lower() in {"1", "true", "yes", "on"}:
        first = []
    more = values.get("extra-index-url", "").split()
    indexes = tuple(url.rstrip("/") for url in (*first, *more))
    return PipSettings(indexes, values.get("cert", ""))


def _files(env: Mapping[str, str]) -> Iterator[Path]:
    chosen = env.get("PIP_CONFIG_FILE")
    if chosen == os.devnull:
        return
    home = home_directory(env)
    user = Path(env.get("XDG_CONFIG_HOME") or home / ".config")
    for base in reversed((env.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")):
        yield Path(base, "pip/pip.conf")
    yield Path("/etc/pip.conf")
    yield home / ".pip/pip.conf"
    yield user / "pip/pip.conf"
    yield Path(sys.prefix, "pip.conf")
    if chosen:
        yield Path(chosen)


def _read(file: Path) -> dict[str, str]:
    """The settings of a file; empty if it is missing or pip would not read it."""
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, configparser.Error):
        return {}
    values: dict[str, str] = {}
    for section in _SECTIONS:
        if parser.has_section(section):
            values.update({name.replace("_", "-"): value for name, value in parser.items(section)})
    return values
