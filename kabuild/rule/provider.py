"""Providers: what one target tells those that depend on it.

A provider is a frozen dataclass; a rule gives at most one of each type. Families of rules
define their own beside their rules; the one below is how any of them hand in work.
"""

from __future__ import annotations

from dataclasses import dataclass

from kabuild.model.action import Action


@dataclass(frozen=True)
class Provider:
    """Base of all providers."""


@dataclass(frozen=True)
class GatesInfo(Provider):
    """The gates of a task, in the order in which they are judged."""

    gates: tuple[Action, ...]
