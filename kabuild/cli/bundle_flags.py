"""The flag of all commands that unpack bundles."""

from __future__ import annotations

from dataclasses import dataclass

from kabuild.bundle.archive import TOTAL_LIMIT
from kabuild.cli.options import Options, flag
from kabuild.cli.types import CONTENT


@dataclass(frozen=True, kw_only=True)
class UnpackFlags(Options):
    """How large bundles may be."""

    max_bytes: int = flag(
        "--max_bytes",
        type=CONTENT,
        default=TOTAL_LIMIT,
        help=f"Refuse a bundle that unpacks to more.  [default: {TOTAL_LIMIT >> 30}G]",
    )
