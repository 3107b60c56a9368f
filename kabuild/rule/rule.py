"""Rules: the kinds of targets.

A rule lives in ``rules/<kind>/rule.py`` as ``RULE`` (or ``RULES``, a tuple). It is pure: attributes
in, actions out. Its own code is not in any key; its actions are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kabuild.model.gate import Gate
from kabuild.rule.attr import Attr
from kabuild.rule.context import Context

COMMON_ATTRS = ("name", "tags")


def accept_all(_: Mapping[str, Any]) -> None:
    """The default whole-target check."""


@dataclass(frozen=True)
class Rule:
    """One kind of target.

    Attributes:
        kind: the name of its tables in BUILD.toml.
        doc: one sentence for ``kabuild info`` and error messages.
        implement: turns a target into actions and providers.
        attrs: its attributes, besides ``name`` and ``tags``.
        subtargets: the parts that ``implement`` declares actions for: ``compile`` makes
            ``softmax.compile`` a label.
        gates: further parts, which judge, in the order of judging. They define the names for
            ``--gates``, and what reports show. A rule with gates is a test.
        check: looks at all attributes together; raises ``AttributeProblem`` whose path
            starts with an attribute's name.
    """

    kind: str
    doc: str
    implement: Callable[[Context], None]
    attrs: Mapping[str, Attr] = field(default_factory=dict)
    subtargets: tuple[str, ...] = ()
    gates: tuple[Gate, ...] = ()
    check: Callable[[Mapping[str, Any]], None] = accept_all

    @property
    def parts(self) -> tuple[str, ...]:
        """All sub-targets, including gates."""
        return tuple(dict.fromkeys((*self.subtargets, *(gate.name for gate in self.gates))))
