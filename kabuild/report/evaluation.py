"""What a report is made from: evaluations read from their records, as plain values.

Whether the records were made a second ago or come out of a bundle of somebody else, a report
is made in the same way: from the outputs and inputs of actions, by digest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kabuild.bundle.manifest import Manifest, Record, damaged
from kabuild.model.action import VERDICT_FILE
from kabuild.model.digest import Digest
from kabuild.model.label import Label
from kabuild.model.options import deciding
from kabuild.report.asked import stopped, with_asked
from kabuild.report.toolchains import UsedToolchain, used_toolchains
from kabuild.store.merkle import read_directory

Get = Callable[[Digest], bytes]
Gates = Mapping[str, Mapping[str, Any]]
"""By gate, what it said: its ``verdict.json``."""

SOURCE = "candidate/"
"""Where a compile action finds the kernel."""

JUDGING = ("correctness", "perf", "unseen")
SPEC = "spec.json"
"""Where the actions of these gates find what they judge."""

_TEXT_LIMIT = 1 << 20


@dataclass(frozen=True)
class TaskResult:
    """One task, solved by one agent, once.

    Attributes:
        task, trial: which; trials count from 1.
        gates: what each gate that was asked for said: its ``verdict.json``, by gate, in the order
            of judging; of one that the machine failed, INFRA as its verdict.
        score: ``score.json``; empty where the score was not asked for.
        candidate, baseline: text of the kernels; empty where the evaluation holds none.
        agent: what the agent's session came to: ``agent.json``.
        transcript: its lines; empty where it was withheld.
        keys: digest of each gate's action, by gate.
        dims: names of the shape space's dims as they were declared; JSON has lost that order.
    """

    task: Label
    trial: int
    gates: Gates
    score: Mapping[str, Any] = field(default_factory=dict)
    candidate: str = ""
    baseline: str = ""
    agent: Mapping[str, Any] = field(default_factory=dict)
    transcript: tuple[Mapping[str, Any], ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    dims: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The directory that its package is in, such as ``hip2hip``."""
        parts = self.task.package.split("/")
        return parts[-2] if len(parts) > 1 else ""

    def passed(self, gate: str) -> bool:
        """Whether a gate said PASS; false where it was not asked for."""
        return bool(self.gates.get(gate, {}).get("verdict") == "PASS")

    @property
    def deciding(self) -> Gates:
        """The gates by which this result counts in figures, and what they said."""
        return {gate: self.gates[gate] for gate in deciding(self.gates)}

    @property
    def correct(self) -> bool:
        """Whether no gate that decides said anything but PASS."""
        judged = [gate for gate in self.deciding if gate != "score"]
        return bool(judged) and all(map(self.passed, judged))

    @property
    def speedup(self) -> float | None:
        """Mean of the ratios over the visible configs; None where it was not measured or failed."""
        if not self.correct:
            return None
        found = self.score.get("speedup") or self.gates.get("perf", {}).get("mean_speedup")
        return float(found) if isinstance(found, int | float) and found > 0 else None

    @property
    def cases(self) -> Sequence[Mapping[str, Any]]:
        """The timed configs."""
        told = self.gates.get("perf", {}).get("cases")
        cases = told if isinstance(told, list | tuple) else ()
        return [
            case
            for case in cases
            if isinstance(case, dict) and isinstance(case.get("speedup"), int | float)
        ]


@dataclass(frozen=True)
class Evaluation:
    """All results of one request on one platform.

    ``source`` says where they are from; ``doubt`` why they are not to be trusted: empty for
    what kabuild judged. ``toolchains`` are those that it was made with, where that is known.
    """

    name: str
    kabuild: str
    platform: Mapping[str, str]
    request: Mapping[str, Any]
    results: tuple[TaskResult, ...]
    source: str = ""
    digest: str = ""
    doubt: str = ""
    toolchains: tuple[UsedToolchain, ...] = ()

    @property
    def machine(self) -> str:
        """The platform with its device, ``cuda: NVIDIA H200``; without one, ``cuda:sm_90``."""
        name, device, arch = (self.platform.get(part) for part in ("name", "device", "arch"))
        if device:
            return f"{name}: {device}"
        return ":".join(part for part in (name, arch) if part)


def read_evaluation(
    manifest: Manifest,
    get: Get,
    *,
    name: str = "",
    source: str = "",
    asked: Mapping[Label, Gates] | None = None,
) -> Evaluation:
    """The evaluation that a bundle's records are.

    ``asked`` has, by task and trial, what each gate said that was asked for: those that left no
    record stay visible, as do those that a score tells of. Raises BundleError for malformed
    verdicts.
    """
    asked = asked or {}
    grouped: dict[Label, list[Record]] = {task: [] for task in asked}
    for record in manifest.records:
        if record.task:
            label = Label.parse(record.label)
            grouped.setdefault(Label.parse(record.task).in_trial(label.trial), []).append(record)
    request = manifest.request
    return Evaluation(
        name=name or str(request.get("agent", "")).rpartition(":")[2] or "solution",
        kabuild=manifest.kabuild,
        platform=manifest.platform,
        request=request,
        results=tuple(
            _result(task, found, asked.get(task), request.get("gates"), get)
            for task, found in grouped.items()
            if task in asked or any(record.gate for record in found)
        ),
        source=source,
        digest=Digest.of(manifest.to_json()).hash,
        toolchains=used_toolchains(manifest.records, get),
    )


def _result(
    task: Label, records: Sequence[Record], asked: Gates | None, named: Any, get: Get
) -> TaskResult:
    """``named`` are the gates that a bundle says were asked for."""
    gates = {record.gate: record for record in records if record.gate}
    sessions = [record for record in records if record.file("agent.json")]
    compiled = gates.get("compile")
    baseline = next((r for r in records if r.label.endswith(".baseline.compile")), None)
    judged = next((gates[gate] for gate in JUDGING if gate in gates), None)
    reference = _source(judged, "task/", get) if judged else ""
    said = {gate: _json(record, VERDICT_FILE, get) for gate, record in gates.items()}
    score = _json(gates["score"], "score.json", get) if "score" in gates else {}
    known = with_asked(with_asked(said, asked), score.get("gates"))
    return TaskResult(
        task=task.in_trial(1),
        trial=task.trial,
        gates=with_asked(known, stopped(known, named)),
        score=score,
        candidate=_source(compiled, SOURCE, get) if compiled else "",
        baseline=_source(baseline, SOURCE, get) if baseline else reference,
        agent=_json(sessions[0], "agent.json", get) if sessions else {},
        transcript=_lines(sessions[0], get) if sessions else (),
        keys={gate: record.key.hash for gate, record in gates.items()},
        dims=_dims(judged, get) if judged else (),
    )


def _dims(record: Record, get: Get) -> tuple[str, ...]:
    """In the order of their declaration, which is that of the kernel's arguments."""
    for path, node in read_directory(record.root, get).walk():
        if path == SPEC:
            try:
                names = json.loads(get(node.digest))["signature"]["dims"]
            except (ValueError, KeyError, TypeError):
                return ()
            return tuple(map(str, names)) if isinstance(names, list) else ()
    return ()


def _json(record: Record, path: str, get: Get) -> Mapping[str, Any]:
    file = record.file(path)
    if file is None:
        return {}
    try:
        value = json.loads(get(file.digest))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise damaged(f"{path} of {record.label} is no JSON object")
    return value


def _lines(record: Record, get: Get) -> tuple[Mapping[str, Any], ...]:
    file = record.file("transcript.jsonl")
    if file is None or file.path in record.withheld:
        return ()
    entries = []
    for line in get(file.digest).decode(errors="replace").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            entries.append(entry)
    return tuple(entries)


def _source(record: Record, prefix: str, get: Get) -> str:
    """The first text below ``prefix`` of an action's inputs."""
    for path, node in read_directory(record.root, get).walk():
        if path.startswith(prefix) and node.digest.size <= _TEXT_LIMIT:
            return get(node.digest).decode(errors="replace")
    return ""
