"""Targets: what BUILD.toml declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kabuild.base.errors import Position
from kabuild.model.label import Label


@dataclass(frozen=True)
class Target:
    """One declaration of a rule, validated: the rule's kind, attributes, file and line.

    ``attrs`` holds every attribute of the rule, defaults included: files as ``Source``, labels as
    ``Label``. ``tags`` are for selection; they are not an input of any action.
    """

    label: Label
    kind: str
    attrs: Mapping[str, Any] = field(hash=False)
    position: Position
    subtargets: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    def labels(self) -> tuple[Label, ...]:
        """This target's label and those of its sub-targets."""
        return (self.label, *(self.label.sub(part) for part in self.subtargets))
