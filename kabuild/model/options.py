"""The options of a build that rules may depend on."""

from __future__ import annotations

from dataclasses import dataclass

from kabuild.model.action import Source
from kabuild.model.label import Label
from kabuild.model.platform import Platform

MOST_TRIALS = 1000
"""The most trials of a task in one build. Each has its own actions, all of which are planned."""

MOST_RUNS = 10_000
"""The most runs of each gate in one build."""

MOST_SAMPLES = 1_000_000
"""The most configs that the admission of a task may try."""

MOST_JOBS = 4096
"""The most CPU slots of a build."""


@dataclass(frozen=True)
class Options:
    """Flags that change actions. Flags that do not (jobs, output) are not here.

    Attributes:
        platform: where candidates run.
        agent: the target that solves tasks.
        solution: the user's file or directory instead of the agent's, if given.
        policy: the scoring policy, one of those that the gate with Role.SCORE declares.
        samples: how many drawn configs the admission of a task tries.
        trials: how often an agent solves each task.
        run: a number in the keys of trials; a new one makes new trials.
        salt: for drawing hidden configs and seeds; never shown to an agent.
    """

    platform: Platform
    agent: Label
    solution: Source | None = None
    policy: str = "aka"
    samples: int = 200
    salt: str = "kabuild-public-1"
    trials: int = 1
    run: int = 0
