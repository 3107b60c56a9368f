"""Watches a candidate that was compiled to report its own mistakes, as on ``cpu``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from alone.patience import Patience
from base.granted_time import GRANTED
from base.program import CandidateFault, Config, RunnerPolicy
from base.spec import Spec
from runners.launcher import Launcher
from torch import Tensor

from sanitize.examiner import SanitizePolicy
from sanitize.findings import Finding, read_findings
from sanitize.places import Places

_KEPT_BYTES = 1 << 17  # of a candidate's output: all findings of one process


class Instrumented:
    """Calls the candidate once per config, each time in a new runner: a fault ends the process."""

    def __init__(
        self, spec: Spec, policy: SanitizePolicy, launcher: Launcher, places: Places
    ) -> None:
        self._spec = spec
        self._policy = policy
        self._launcher = launcher
        self._places = places
        self._patience = Patience(policy.total_seconds)

    def examine(
        self, config: Config, inputs: Mapping[str, Tensor]
    ) -> tuple[Sequence[Finding], CandidateFault | None]:
        """One call of the candidate. Raises MachineFault."""
        started = GRANTED.now()
        fault = None
        try:
            said = self._call(config, inputs)
        except CandidateFault as caught:
            fault, said = caught, caught.detail
        self._patience.spent_seconds += GRANTED.now() - started
        return read_findings(said, self._places), fault

    def _call(self, config: Config, inputs: Mapping[str, Tensor]) -> str:
        policy = RunnerPolicy(
            call_seconds=self._policy.call_seconds,
            life_seconds=self._patience.left_seconds,
            stderr_bytes=_KEPT_BYTES,
        )
        with self._launcher.open(self._spec.candidate, self._spec.signature, policy) as runner:
            runner.load(config, 1)
            runner.batch([inputs])
            return runner.said()
