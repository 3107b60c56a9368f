"""The mode in which a PyTorch baseline is timed, by config: eager, or compiled."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from base.program import Config
from base.spec import Spec, SpecError

EAGER = "eager"
COUNTED = ("", "max-autotune-no-cudagraphs")
RECORDED = ("max-autotune",)  # copies its inputs into its graphs: shown, but never the baseline
_SCHEMA = 1


@dataclass(frozen=True)
class Choice:
    """The mode in which the baseline of each config is timed, with the evidence.

    Attributes:
        modes: by config; empty for eager.
        evidence: by config and mode, ns per call, or why the mode is not available; ``counted``
            names the chosen mode, and ``tunings`` has the ns of each tuning of a compiled mode.
    """

    modes: Mapping[str, str] = field(default_factory=dict, hash=False)
    evidence: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)

    @classmethod
    def fastest(cls, configs: Sequence[Config], looks: Mapping[str, Looks]) -> Choice:
        """Choose for each config the mode with the lowest median among the permitted ones."""
        modes, evidence = {}, {}
        for config in configs:
            seen = looks[config.name]
            counting = {mode: times for mode, times in seen.times.items() if mode in COUNTED}
            fastest = min(counting, key=lambda mode: statistics.median(counting[mode]))
            modes[config.name] = fastest
            told = {mode or EAGER: statistics.median(times) for mode, times in seen.times.items()}
            tuned = {"tunings": seen.tunings} if seen.tunings else {}
            evidence[config.name] = {**told, **seen.refused, "counted": fastest or EAGER, **tuned}
        return cls(modes, evidence)

    @classmethod
    def read(cls, path: Path, configs: Sequence[Config]) -> Choice:
        """Read the choice for ``configs`` from a file. Raises SpecError for a malformed one."""
        try:
            value = json.loads(path.read_bytes())
            if value["schema"] != _SCHEMA:
                raise ValueError("it is not of schema 1")
            evidence = {config.name: dict(value["baselines"][config.name]) for config in configs}
            counted = {name: str(found["counted"]) for name, found in evidence.items()}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SpecError(f"{path.name} is not a choice of a baseline: {error}") from None
        modes = {name: "" if mode == EAGER else mode for name, mode in counted.items()}
        if unknown := set(modes.values()) - set(COUNTED):
            raise SpecError(f"{path.name} names mode {min(unknown)!r}, which cannot be a baseline")
        return cls(modes, evidence)

    @classmethod
    def of_host(cls, spec: Spec) -> Choice:
        """The choice for a spec whose programs run on the CPU: eager for every config.

        Raises SpecError for a spec that names a compiled mode, which is timed on devices only.
        """
        choice = cls.read(Path(spec.choice), spec.configs) if spec.choice else cls()
        if compiled := set(choice.modes.values()) - {""}:
            raise SpecError(
                f"{spec.choice} names mode {min(compiled)!r}, but nothing is compiled here"
            )
        return choice

    def to_json(self) -> dict[str, Any]:
        """The form that ``read`` reads."""
        return {
            "schema": _SCHEMA,
            "baselines": {name: dict(found) for name, found in self.evidence.items()},
        }


@dataclass
class Looks:
    """The first measurements of one config.

    Attributes:
        times: by mode, ns per call of each measurement; of the fastest tuning, if tuned.
        refused: by mode, why it is not available.
        tunings: the median of each tuning of a mode that may be chosen.
        fastest: the cache of the fastest of these; empty for none.
    """

    times: dict[str, list[float]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    tunings: list[float] = field(default_factory=list)
    fastest: str = ""

    def note(self, mode: str, found: list[float] | str, cache: str) -> None:
        """Record the times of a compiled mode, or why it failed; ``cache`` is where it compiled."""
        if isinstance(found, str):
            if mode not in self.times:
                self.refused[mode] = found
            return
        self.refused.pop(mode, None)
        if mode in COUNTED:
            if statistics.median(found) <= min(self.tunings, default=math.inf):
                self.times[mode], self.fastest = found, cache
            self.tunings.append(statistics.median(found))
        else:
            self.times[mode] = found
