"""What a server can lose."""

from __future__ import annotations

from enum import Enum


class Loss(Enum):
    """Why a blob did not come."""

    GONE = "without one of its blobs"
    DAMAGED = "with a damaged blob"
