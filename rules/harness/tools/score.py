"""The score gate: the verdicts of a task's other gates, as one figure.

``python tools/score.py spec.json`` reads ``verdicts/<gate>.json`` and writes
``out/score.json`` and ``out/verdict.json``. Standard library only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from terms import scoring
from terms.gates import SCORED
from terms.reasons import Reason
from terms.speedup import Speedup
from terms.verdict import FAIL, PASS, SKIPPED, Verdict, canonical_json, read_verdict, write_verdict

_TIMED = ("config", "candidate_ns", "baseline_ns", "speedup", "low", "high", "faster")
_GENERAL = ("quadrants", "conditional_correctness")
_ROUNDING = 1e-4  # the rounding of a verdict's numbers
_BAD_INPUT = 2


@dataclass(frozen=True)
class ScoreSpec:
    """The policy whose score becomes the task's, and the requested gates, in order.

    ``without`` lists gates that the task does not have. ``tier`` is ``script`` if the task's own
    script judges results, and empty otherwise.
    """

    policy: str
    gates: tuple[str, ...]
    without: tuple[str, ...] = ()
    tier: str = ""

    @property
    def missing(self) -> tuple[str, ...]:
        """The gates that a score needs but that were not requested."""
        known = (*self.gates, *self.without)
        return tuple(gate for gate in SCORED if gate not in known)


@dataclass(frozen=True)
class Score:
    """One task's score: its document ``score.json`` and the gate's own verdict."""

    document: Mapping[str, Any]
    verdict: Verdict


def parse_spec(value: Any) -> ScoreSpec:
    """The spec in a JSON value. Raises ``ValueError`` for a malformed one."""
    match value:
        case {"schema": 1, "gate": "score", "policy": str(policy), "gates": [*gates]}:
            if policy not in scoring.POLICIES:
                known = ", ".join(scoring.POLICIES)
                raise ValueError(f"unknown scoring policy {policy!r}; known: {known}")
            if not gates or not all(isinstance(g, str) and g.isidentifier() for g in gates):
                raise ValueError(f"invalid gates: {gates!r}")
            without, tier = value.get("without", []), value.get("tier", "")
            if not set(without) <= {"unseen"} or tier not in {"", "script"}:
                raise ValueError(f"invalid 'without' or 'tier': {without!r}, {tier!r}")
            return ScoreSpec(policy, tuple(gates), tuple(without), tier)
        case _:
            raise ValueError("not a score spec of schema 1")


def score(spec: ScoreSpec, verdicts: Mapping[str, Mapping[str, Any]]) -> Score:
    """Score the verdicts, one for each gate of ``spec``.

    A gate that failed, was rejected or was skipped is a failure of the task. If a needed gate
    was not requested, there is no score, and the document says so.
    """
    speedups, problem = _speedups(verdicts.get("perf"))
    mean = Speedup.mean(speedups) if speedups else None
    wide = mean is not None and mean.wide
    ratios = tuple(speedup.low if wide else speedup.counted for speedup in speedups)
    outcome = _outcome(spec.gates, verdicts, ratios)
    visible = tuple(gate for gate in spec.gates if gate != "unseen")
    scores = {name: policy(outcome) for name, policy in scoring.POLICIES.items()}
    shown = _outcome(visible, verdicts, ratios)
    reason = f"not asked for: {', '.join(spec.missing)}" if spec.missing else ""
    headline = None if spec.missing else scores[spec.policy]
    mean = mean if outcome.ratios else None
    speedup = {
        "speedup": mean and mean.figure,
        "speedup_low": mean and mean.low,
        "speedup_high": mean and mean.high,
    }
    document = {
        "schema": 1,
        "policy": spec.policy,
        "score": headline,
        "score_reason": reason,
        "scores": None if spec.missing else scores,
        "scores_visible": {n: policy(shown) for n, policy in scoring.POLICIES.items()}
        if not set(spec.missing) - {"unseen"}
        else None,
        "fast": scoring.fast(outcome),
        **speedup,
        "gates": {gate: _gate(verdicts[gate]) for gate in spec.gates},
        "not_requested": list(spec.missing),
        "configs": [] if problem else _configs(verdicts.get("perf")),
        **{key: verdicts.get("unseen", {}).get(key) for key in _GENERAL},
        **({"tier": spec.tier} if spec.tier else {}),
    }
    figures = {"policy": spec.policy, "score": headline, "score_reason": reason}
    figures |= {"tier": spec.tier} if spec.tier else {}
    verdict = _verdict(spec, verdicts, problem, {**figures, **speedup}, mean)
    return Score(document, verdict)


def _outcome(
    gates: Sequence[str], verdicts: Mapping[str, Mapping[str, Any]], ratios: tuple[float, ...]
) -> scoring.Outcome:
    passed = {gate: verdicts[gate]["verdict"] == PASS for gate in gates}
    correct = passed.get("correctness", False) and all(passed.values())
    return scoring.Outcome(passed.get("compile", False), correct, ratios if correct else ())


def _speedups(perf: Mapping[str, Any] | None) -> tuple[tuple[Speedup, ...], str]:
    """The configs' speedups in a perf verdict, and what is wrong with its times."""
    if perf is None or perf["verdict"] != PASS:
        return (), ""
    try:
        cases = {case["config"]: case for case in perf["cases"]}
        if len(cases) != len(perf["cases"]):
            raise scoring.TimesError("a config was timed twice")
        times = [
            {name: case.get(side) for name, case in cases.items()}
            for side in ("baseline_ns", "candidate_ns")
        ]
        ratios = scoring.ratios(perf["configs"], *times)
        speedups = [Speedup.read(cases[name]) for name in perf["configs"]]
    except (KeyError, TypeError, AttributeError):
        return (), "the perf verdict has no times"
    except ValueError as error:
        return (), str(error)
    for name, speedup, ratio in zip(perf["configs"], speedups, ratios, strict=True):
        if speedup.figure > ratio * (1 + _ROUNDING):
            return (), f"a speedup of {speedup.figure:g} for {name!r}, whose times give {ratio:g}"
    return tuple(speedups), ""


def _verdict(
    spec: ScoreSpec,
    verdicts: Mapping[str, Mapping[str, Any]],
    problem: str,
    figures: Mapping[str, Any],
    mean: Speedup | None,
) -> Verdict:
    cases = [{"gate": gate, **_gate(verdicts[gate])} for gate in spec.gates]
    failed = [gate for gate in spec.gates if verdicts[gate]["verdict"] != PASS]
    # A skipped gate only follows from a failed one, wherever that is in the list.

    failed.sort(key=lambda gate: verdicts[gate]["verdict"] == SKIPPED)
    if failed:
        first = verdicts[failed[0]]
        outcome, reason = first["verdict"], first.get("reason") or Reason.EARLIER_GATE.value
        summary = f"{failed[0]}: {first.get('summary') or reason}"
        return Verdict("score", outcome, reason, summary, "", cases, figures)
    if problem:
        return Verdict("score", FAIL, Reason.UNUSABLE_TIMES.value, problem, "", cases, figures)
    summary = figures["score_reason"]
    if figures["score"] is not None:
        summary = f"{spec.policy} {figures['score']:.4g}, speedup {mean}"
    return Verdict("score", PASS, "", summary, "", cases, figures)


def _gate(verdict: Mapping[str, Any]) -> dict[str, Any]:
    return {key: verdict.get(key, "") for key in ("verdict", "reason", "summary")}


def _configs(perf: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    if perf is None or perf["verdict"] != PASS:
        return []
    cases = [case for case in perf.get("cases", []) if isinstance(case, dict)]
    return [{key: case[key] for key in _TIMED if key in case} for case in cases]


def main(arguments: Sequence[str]) -> int:
    """Run the gate in the working directory. Exit 0 for any verdict, 2 for bad input."""
    if len(arguments) != 1:
        print("usage: score.py SPEC", file=sys.stderr)
        return _BAD_INPUT
    try:
        spec = parse_spec(json.loads(Path(arguments[0]).read_bytes()))
        verdicts = {
            gate: read_verdict(Path("verdicts") / f"{gate}.json", gate) for gate in spec.gates
        }
        result = score(spec, verdicts)
    except (OSError, ValueError) as error:
        print(f"score.py: {error}", file=sys.stderr)
        return _BAD_INPUT
    files = {"score.json": canonical_json(result.document)}
    write_verdict(replace(result.verdict, files=files))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
