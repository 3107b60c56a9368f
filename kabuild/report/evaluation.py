"""Evaluations, the input of reports, read from their records as plain values.

A report is made in the same way from a new build and from a foreign bundle: from the outputs and
inputs of actions, by digest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kabuild.base.bounded_json import bounded_json
from kabuild.base.errors import BundleError
from kabuild.bundle.manifest import Manifest, Record, damaged
from kabuild.bundle.task_digest import task_digest
from kabuild.bundle.verdicts import kind_of
from kabuild.model.action import AGENT_FACTS, TRANSCRIPT, VERDICT_FILE
from kabuild.model.digest import Digest
from kabuild.model.gate import Gate, Gates, merged
from kabuild.model.gate_result import GateResult
from kabuild.model.label import Label
from kabuild.model.task_result import Evidence, TaskResult
from kabuild.model.verdict import EARLIER_GATE, Verdict
from kabuild.report.toolchains import UsedToolchain, used_toolchains
from kabuild.store.trees import read_directory

Get = Callable[[Digest], bytes]

SOURCE, TASK = "candidate/", "task/"
"""Inputs of gates: the kernel in the first gate, the oracle in gates that compare."""

SPEC = "spec.json"
"""The input directory with the candidate."""

FIGURES = "score.json"
"""The output file of a score gate."""

_TEXT_LIMIT = 1 << 20


@dataclass(frozen=True)
class Evaluation:
    """All results of one request on one platform.

    ``source`` says where they are from; ``doubt`` why they are not to be trusted: empty for
    what kabuild judged. ``toolchains`` are those that it was made with, where that is known;
    ``gates`` those that the rules of its tasks declare, whether they were asked for or not.
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
    gates: tuple[Gate, ...] = ()

    @property
    def declared(self) -> tuple[Gate, ...]:
        """The gates of its rules and results, in the order of judging."""
        asked = (tuple(gate.declared for gate in one.gates.values()) for one in self.results)
        return merged([self.gates, *asked])

    @property
    def machine(self) -> str:
        """The platform with its device, ``cuda: NVIDIA H200``; without one, ``cuda:sm_90``."""
        name, device, arch = (self.platform.get(part) for part in ("name", "device", "arch"))
        if device:
            return f"{name}: {device}"
        return ":".join(part for part in (name, arch) if part)


def read_evaluation(
    manifest: Manifest, get: Get, known: Gates, *, name: str = "", source: str = ""
) -> Evaluation:
    """The evaluation that a bundle's records are, some of them of gates that are ``known`` here.

    One that is not is usual and has no figures. Raises BundleError for malformed verdicts.
    """
    request = manifest.request
    judged = {
        task: (records, known.of(kind_of(manifest, task)))
        for task, records in _by_task(manifest).items()
        if any(record.gate for record in records)
    }
    results = (
        _result(task, records, request.get("gates"), declared, get)
        for task, (records, declared) in judged.items()
    )
    found = Evaluation(
        name=name or agent_name(request) or "solution",
        kabuild=manifest.kabuild,
        platform=manifest.platform,
        request=request,
        results=tuple(results),
        source=source,
        gates=merged(dict.fromkeys(declared for _, declared in judged.values())),
    )
    return with_records(found, manifest, get)


def with_records(evaluation: Evaluation, manifest: Manifest, get: Get) -> Evaluation:
    """``evaluation`` with details from the records of its actions.

    That is its toolchains and the manifest's digest, and of each result the whole ``score.json``,
    the agent's session, and the kernels. Raises BundleError for malformed records.
    """
    by_task = _by_task(manifest)
    return replace(
        evaluation,
        results=tuple(
            _with_records(result, by_task.get(result.label, ()), get)
            for result in evaluation.results
        ),
        digest=Digest.of(manifest.to_json()).hash,
        toolchains=used_toolchains(manifest.records, get),
    )


def agent_name(request: Mapping[str, Any]) -> str:
    """The name of the request's agent; empty for a user's solution."""
    return str(request.get("agent") or "").rpartition(":")[2]


def _by_task(manifest: Manifest) -> Mapping[Label, Sequence[Record]]:
    """The records of each task and trial."""
    found: dict[Label, list[Record]] = {}
    for record in manifest.records:
        if record.task:
            label = Label.parse(record.task).in_trial(Label.parse(record.label).trial)
            found.setdefault(label, []).append(record)
    return found


def _result(
    task: Label, records: Sequence[Record], asked: Any, declared: Sequence[Gate], get: Get
) -> TaskResult:
    """The result of a task. ``asked`` are the requested gates, according to the bundle."""
    gates = {
        record.gate: GateResult.read(
            Label.parse(record.label),
            _gate(record.gate, declared),
            _json(record, VERDICT_FILE, get),
            record.key.hash,
        )
        for record in records
        if record.gate
    }
    score = _scoring(records)
    told = _json(score, FIGURES, get).get("gates") if score else None
    known = in_order(told_gates(task, told, declared) | gates, declared)
    stopped = stopped_gates(task, known, asked, declared)
    return TaskResult.of(task, in_order(stopped | known, declared).values())


def _gate(name: str, declared: Sequence[Gate]) -> Gate:
    """The gate of that name; if undeclared, a default gate without figures."""
    return next((gate for gate in declared if gate.name == name), Gate(name))


def _scoring(records: Iterable[Record]) -> Record | None:
    """The gate that scores."""
    return next((r for r in records if r.gate and r.file(FIGURES)), None)


def told_gates(task: Label, told: Any, declared: Sequence[Gate]) -> dict[str, GateResult]:
    """What ``gates`` of a ``score.json`` says of gates that left no record.

    A bundle is not trusted: malformed parts are ignored.
    """
    known = told if isinstance(told, Mapping) else {}
    return {
        gate: GateResult.read(task.sub(gate), _gate(gate, declared), said)
        for gate, said in known.items()
        if isinstance(said, Mapping)
    }


def stopped_gates(
    task: Label, known: Mapping[str, GateResult], asked: Any, declared: Sequence[Gate]
) -> dict[str, GateResult]:
    """The skipped default gates among ``asked``, after one that did not pass.

    Without them, a failing agent's gates would seem not to have been requested. ``asked`` is what a
    bundle says was asked for, where it says so.
    """
    failed = next((gate for gate in known.values() if not gate.passed), None)
    if failed is None or not isinstance(asked, list):
        return {}
    because = f"{failed.gate}: {failed.word}"
    return {
        gate.name: GateResult(
            task.sub(gate.name), gate, Verdict.SKIPPED.value, EARLIER_GATE, because
        )
        for gate in declared
        if gate.usual and gate.name in asked and gate.name not in known
    }


def in_order(gates: Mapping[str, GateResult], declared: Sequence[Gate]) -> dict[str, GateResult]:
    """``gates`` in the order of judging, unknown ones last."""
    order = [gate.name for gate in declared]
    places = {gate: order.index(gate) if gate in order else len(order) for gate in gates}
    return {gate: gates[gate] for gate in sorted(gates, key=places.__getitem__)}


def _with_records(result: TaskResult, records: Sequence[Record], get: Get) -> TaskResult:
    judging = [record for record in records if record.gate]
    session = next((record for record in records if record.file(AGENT_FACTS)), None)
    compiled = _having(judging, SOURCE, get)
    baseline = next((r for r in records if r.label.endswith(".baseline.compile")), None)
    judged = _having(judging, TASK, get)
    reference = _source(judged, TASK, get) if judged else ""
    scoring = _scoring(judging)
    score = _json(scoring, FIGURES, get) if scoring else {}
    return replace(
        result,
        figures=score or result.figures,
        agent=_session(session, get) if session else result.agent,
        evidence=Evidence(
            candidate=_source(compiled, SOURCE, get) if compiled else "",
            baseline=_source(baseline, SOURCE, get) if baseline else reference,
            transcript=_lines(session, get) if session else (),
            dims=_dims(judged, get) if judged else (),
            task_digest=task_digest((r for r in judging if _is_usual(r, result)), get),
        ),
    )


def _is_usual(record: Record, result: TaskResult) -> bool:
    gate = result.gates.get(record.gate)
    return gate is not None and gate.declared.usual


def _having(records: Iterable[Record], prefix: str, get: Get) -> Record | None:
    """The first action with inputs below ``prefix``."""
    for record in records:
        if any(path.startswith(prefix) for path in _paths(record, get)):
            return record
    return None


def _paths(record: Record, get: Get) -> Iterator[str]:
    return (path for path, _ in read_directory(record.root, get).walk())


def _dims(record: Record, get: Get) -> tuple[str, ...]:
    """Dims in the order of their declaration, which is that of the kernel's arguments."""
    for path, node in read_directory(record.root, get).walk():
        if path == SPEC:
            try:
                names = bounded_json(get(node.digest))["signature"]["dims"]
            except (ValueError, KeyError, TypeError):
                return ()
            return tuple(map(str, names)) if isinstance(names, list) else ()
    return ()


def _json(record: Record, path: str, get: Get) -> Mapping[str, Any]:
    file = record.file(path)
    if file is None:
        return {}
    try:
        value = bounded_json(get(file.digest))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise damaged(f"{path} of {record.label} is not a JSON object")
    return value


def _session(record: Record, get: Get) -> Mapping[str, Any]:
    """An agent's report; empty if it is not a JSON object, as in a build: it spoils no bundle."""
    try:
        return _json(record, AGENT_FACTS, get)
    except BundleError:
        return {}


def _lines(record: Record, get: Get) -> tuple[Mapping[str, Any], ...]:
    file = record.file(TRANSCRIPT)
    if file is None or file.path in record.withheld:
        return ()
    entries = []
    for line in get(file.digest).decode(errors="replace").splitlines():
        try:
            entry = bounded_json(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            entries.append(entry)
    return tuple(entries)


def _source(record: Record, prefix: str, get: Get) -> str:
    """The first text below ``prefix`` of an action's inputs."""
    for path, node in read_directory(record.root, get).walk():
        if path.startswith(prefix) and node.digest.size <= _TEXT_LIMIT:
            content = get(node.digest)
            if b"\0" not in content:
                return content.decode(errors="replace")
    return ""
