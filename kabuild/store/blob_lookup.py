"""Blobs by a prefix of their hash, as users name them."""

from __future__ import annotations

import os
from pathlib import Path

from kabuild.base.errors import Reason, UsageError
from kabuild.model.digest import Digest

SHORTEST = 4


def find_blob(root: Path, prefix: str) -> Digest:
    """The only blob of the store at ``root`` whose hash has this prefix. Raises UsageError."""
    text = prefix.lower().partition("/")[0]
    if len(text) < SHORTEST or set(text) - set("0123456789abcdef"):
        raise UsageError(
            Reason.BAD_FLAG,
            f"'{prefix}' is not a valid key",
            hint=f"a key is 64 hexadecimal digits, or at least its first {SHORTEST}",
        )
    shard = root / "cas" / text[:2]
    names = [n for n in os.listdir(shard) if n.startswith(text)] if shard.is_dir() else []  # noqa: PTH208
    if len(names) != 1:
        what = f"{len(names)} blobs begin with" if names else "nothing stored begins with"
        raise UsageError(
            Reason.BAD_FLAG,
            f"{what} {prefix}",
            hint="give more digits" if names else "'kabuild aquery' prints keys",
        )
    return Digest(names[0], (shard / names[0]).stat().st_size)
