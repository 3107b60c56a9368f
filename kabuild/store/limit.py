"""The size limit of the store, and its source."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from kabuild.base.errors import Reason, UsageError
from kabuild.base.sizes import parse_size
from kabuild.store.user_settings import read_user_settings, user_file

VARIABLE = "KABUILD_CACHE_SIZE"
DEFAULT = 20 << 30


@dataclass(frozen=True)
class Limit:
    """The limit in bytes, and where it is set."""

    bytes: int
    source: str


def size_limit(workspace: int | None = None, env: Mapping[str, str] = os.environ) -> Limit:
    """The first of: ``$KABUILD_CACHE_SIZE``, the user's file, the workspace's file, 20G.

    The store is the user's and serves all workspaces, so the user's setting precedes that of a
    workspace. Raises UsageError and LoadError for malformed sizes.
    """
    if text := env.get(VARIABLE):
        try:
            return Limit(parse_size(text), f"${VARIABLE}")
        except ValueError as error:
            raise UsageError(Reason.BAD_FLAG, f"{VARIABLE}: {error}") from None
    mine = read_user_settings(env).cache_size
    if mine is not None:
        return Limit(mine, str(user_file(env)))
    if workspace is not None:
        return Limit(workspace, "WORKSPACE.toml")
    return Limit(DEFAULT, "default")
