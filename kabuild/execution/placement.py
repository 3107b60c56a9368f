"""Which actions a fleet runs, and which of its workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kabuild.execution.wire import leaves_report
from kabuild.model.action import Action
from kabuild.model.platform import CPU

TIMED = "timed"

Routing = Mapping[str, str]
"""Properties of workers by name, as the server's operator gave them to its workers."""


@dataclass(frozen=True)
class Placement:
    """Where actions run.

    Attributes:
        private: labels of actions that stay on this machine, since they know a secret.
        pools: routing by kind of action; see ``kinds``. Empty if any worker will do.
    """

    private: frozenset[str] = field(default=frozenset(), repr=False)
    pools: Mapping[str, Routing] = field(default_factory=dict, hash=False)

    def stays(self, action: Action) -> str:
        """Why ``action`` runs on this machine; empty if a fleet runs it."""
        if action.secrets:
            return "it has secrets"
        if str(action.label) in self.private:
            return "it knows a private salt"
        if action.network:
            return "it uses the network"
        return "" if leaves_report(action.outputs) else "an output has a reserved name"

    def routing(self, action: Action) -> Routing | None:
        """The properties of workers that may run ``action``; None if no pool is for it."""
        if not self.pools:
            return {}
        return next((self.pools[kind] for kind in kinds(action) if kind in self.pools), None)


def kinds(action: Action) -> Iterator[str]:
    """The names of pools for ``action``, the most specific first.

    ``cuda:sm_90 timed``, ``cuda timed``, ``cuda:sm_90``, ``cuda`` for one that measures on a
    device. One that uses no device, as a compilation for it, is one for ``cpu``.
    """
    needs, platform = action.resources, action.platform
    uses_device = needs.lease not in {"", CPU}
    name = platform.name if uses_device else CPU
    names = [str(platform), name] if uses_device else [name]
    timed = needs.timed or needs.lease == CPU
    yield from (f"{item} {TIMED}" for item in dict.fromkeys(names) if timed)
    yield from dict.fromkeys(names)
