"""A seal for tests that need one and no file for it."""

from __future__ import annotations

from kabuild.base.seal import Seal

SEAL = Seal(b"k" * 32)
OTHER_SEAL = Seal(b"o" * 32)
