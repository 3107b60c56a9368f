"""What a user asked for that rules may depend on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kabuild.model.artifact import Source
from kabuild.model.label import Label
from kabuild.model.platform import Platform

GATES = ("compile", "correctness", "perf", "unseen", "score")
ON_REQUEST = ("retention", "sanitize")
"""Gates that run where they are named, and of which no score depends."""

POLICIES = ("aka", "aka-v4", "fast_p", "geomean")


MOST_TRIALS = 1000
"""Trials of a task in one build: each is actions of its own, which are planned before any runs."""


def deciding(gates: Collection[str]) -> tuple[str, ...]:
    """Those of ``gates`` by which a trial counts: what was asked for besides, only where alone."""
    usual = tuple(gate for gate in gates if gate not in ON_REQUEST)
    return usual or tuple(gates)


@dataclass(frozen=True)
class Options:
    """Flags that change actions. Flags that do not (jobs, output) are not here.

    Attributes:
        platform: where candidates run.
        agent: the target that turns tasks into solutions.
        solution: a person's file or directory instead of the agent's, if given.
        policy: the scoring policy.
        samples: on how many drawn configs the admission of a task tries its kernels.
        trials: how often an agent that is no replay solves each task.
        run: a number that draws its trials anew; in their keys.
        salt: what unseen configurations and seeds are drawn with; never shown to an agent.
    """

    platform: Platform
    agent: Label
    solution: Source | None = None
    policy: str = "aka"
    samples: int = 200
    salt: str = "kabuild-public-1"
    trials: int = 1
    run: int = 0
