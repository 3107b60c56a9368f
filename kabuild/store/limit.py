"""How large the store may become, and who says so."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kabuild.base.errors import LoadError, Position, Reason, UsageError
from kabuild.base.sizes import parse_size

VARIABLE = "KABUILD_CACHE_SIZE"
DEFAULT = 20 << 30
_KEY = "size"
_TABLE = "cache"


@dataclass(frozen=True)
class Limit:
    """Bytes, and where that is set."""

    bytes: int
    source: str


def size_limit(workspace: int | None = None, env: Mapping[str, str] = os.environ) -> Limit:
    """The first of: ``$KABUILD_CACHE_SIZE``, the user's file, the workspace's word, 20G.

    The store is the user's and serves all workspaces, so the user's word comes before that of
    a workspace. Raises UsageError and LoadError for what is no size.
    """
    if text := env.get(VARIABLE):
        try:
            return Limit(parse_size(text), f"${VARIABLE}")
        except ValueError as error:
            raise UsageError(Reason.BAD_FLAG, f"{VARIABLE}: {error}") from None
    file = user_file(env)
    mine = _read(file)
    if mine is not None:
        return Limit(mine, str(file))
    if workspace is not None:
        return Limit(workspace, "WORKSPACE.toml")
    return Limit(DEFAULT, "default")


def user_file(env: Mapping[str, str] = os.environ) -> Path:
    """``~/.config/kabuild/config.toml``: what one user wants in all workspaces."""
    home = Path(env.get("HOME") or "~").expanduser()
    return Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "kabuild" / "config.toml"


def _read(file: Path) -> int | None:
    """``[cache] size`` of the user's file. Raises LoadError."""
    try:
        values = tomllib.loads(file.read_text())
        size = values.get(_TABLE, {}).get(_KEY)
        return None if size is None else parse_size(str(size))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, AttributeError) as error:
        raise LoadError(
            Reason.BAD_ATTRIBUTE,
            f"[{_TABLE}] cannot be read: {error}",
            position=Position(str(file)),
            hint=f'write [{_TABLE}] and {_KEY} = "20G"',
        ) from None
