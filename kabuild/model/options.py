"""What a user asked for that rules may depend on."""

from __future__ import annotations

from dataclasses import dataclass

from kabuild.base.errors import Reason, UsageError
from kabuild.base.suggest import suggest
from kabuild.model.action import Source
from kabuild.model.label import Label
from kabuild.model.platform import Platform

POLICIES = ("aka", "aka-v4", "fast_p", "geomean")


MOST_TRIALS = 1000
"""Trials of a task in one build: each is actions of its own, which are planned before any runs."""

MOST_RUNS = 10_000
"""Runs of each gate in one build."""

MOST_SAMPLES = 1_000_000
"""Configs that the admission of a task may try."""

MOST_JOBS = 4096
"""CPU slots of a build."""


@dataclass(frozen=True)
class Options:
    """Flags that change actions. Flags that do not (jobs, output) are not here.

    Attributes:
        platform: where candidates run.
        agent: the target that turns tasks into solutions.
        solution: a person's file or directory instead of the agent's, if given.
        policy: the scoring policy.
        samples: on how many drawn configs the admission of a task tries its kernels.
        trials: how often an agent that runs a program solves each task.
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


def check_policy(name: str) -> None:
    """Raise UsageError(BAD_FLAG) for a scoring policy that there is not."""
    if name not in POLICIES:
        hint = suggest(name, POLICIES) or f"policies: {', '.join(POLICIES)}"
        raise UsageError(Reason.BAD_FLAG, f"unknown scoring policy '{name}'", hint=hint)
