"""Providers: information from a target for its dependents.

A provider is a frozen dataclass; a rule gives at most one of each type. Families of rules
define their own beside their rules.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Provider:
    """Base of all providers."""
