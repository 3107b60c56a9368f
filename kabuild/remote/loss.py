"""Blobs that could not be fetched."""

from __future__ import annotations

from enum import Enum


class Loss(Enum):
    """Why a blob could not be fetched."""

    GONE = "without one of its blobs"
    DAMAGED = "with a damaged blob"
