"""What a finished command means: a verdict, a failure, or a fault of the machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kabuild.base.bounded_json import read_json
from kabuild.base.errors import InfraError, Reason, StoreError
from kabuild.base.printing import marked
from kabuild.execution.prepared import Prepared
from kabuild.execution.strategy import Execution
from kabuild.model.action import DECLARED_WRONGLY, VERDICT_FILE, Action, Source
from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult, Outcome, Settled
from kabuild.model.verdict import GateVerdict, Verdict
from kabuild.store.cas import Cas

_TAIL_LINES, _TAIL_BYTES = 20, 4000


def conclude(prepared: Prepared, execution: Execution, cas: Cas) -> Settled:
    """How an action settles after its command ran.

    A gate that ran has a verdict; one that has none was stopped by the machine or by a
    mistake of ours, which is never blamed on the candidate: InfraError(ACTION_CRASHED, or
    OUTPUT_MISSING for a PASS without its outputs). A gate that reports a broken task
    has failed: neither the machine nor the candidate is at fault. The same holds for an action with
    facts, which reports failures of what it runs by itself. Other actions fail as data.
    """
    action, result = prepared.action, execution.result
    problem = execution.fault or (f"exit code {result.exit_code}" if result.exit_code else "")
    if action.gate:
        if not execution.fault and result.exit_code == DECLARED_WRONGLY:
            message = _declared_wrongly(action, result, cas)
            return Settled(action.label, Outcome.FAILED, prepared.key, result, message=message)
        if problem:
            raise _crashed(action, problem, result, cas)
        verdict = read_verdict(action, result, cas)
        if isinstance(verdict, str):
            raise _crashed(action, verdict, result, cas)
        if verdict.verdict is Verdict.PASS and (lacking := _lacking(action, result)):
            raise InfraError(
                Reason.OUTPUT_MISSING, f"{action.label} passed without making '{lacking}'"
            )
        return Settled(action.label, Outcome.DONE, prepared.key, result, verdict=verdict)
    lacking = "" if problem else _lacking(action, result)
    if lacking:
        problem = f"the command succeeded but did not make '{lacking}'"
    if problem and action.facts:
        if not execution.fault and result.exit_code == DECLARED_WRONGLY:
            message = _declared_wrongly(action, result, cas)
            return Settled(action.label, Outcome.FAILED, prepared.key, result, message=message)
        raise _crashed(action, problem, result, cas)
    if problem:
        message = _refusal(result, cas) if lacking else ""
        message = message or "\n".join(filter(None, (problem, marked(tail(result.stderr, cas)))))
        return Settled(
            action.label, Outcome.FAILED, prepared.key, result, message=message, lacking=lacking
        )
    facts = read_facts(action, result, cas)
    return Settled(action.label, Outcome.DONE, prepared.key, result, facts=facts)


def _refusal(result: ActionResult, cas: Cas) -> str:
    """What a tool that judges says of its input in an action that is no gate; empty if nothing."""
    file = result.file(VERDICT_FILE)
    try:
        verdict = GateVerdict.from_json(cas.get(file.digest)) if file else None
    except (ValueError, StoreError):
        return ""
    if verdict is None or verdict.verdict is Verdict.PASS:
        return ""
    head = verdict.summary or verdict.reason
    detail = verdict.detail.removeprefix(verdict.summary).strip("\n")
    return "\n".join(filter(None, (head, marked(detail))))


def recall(prepared: Prepared, result: ActionResult, cas: Cas) -> Settled | None:
    """How an action settles with a cached result; None if that is unusable."""
    action = prepared.action
    verdict = None
    if action.gate:
        found = read_verdict(action, result, cas)
        if isinstance(found, str):
            return None
        verdict = found
    elif _lacking(action, result):
        return None  # the result of an equal gate that did not pass
    return Settled(
        action.label,
        Outcome.DONE,
        prepared.key,
        result,
        cached=True,
        verdict=verdict,
        facts=read_facts(action, result, cas),
    )


def read_verdict(action: Action, result: ActionResult, cas: Cas) -> GateVerdict | str:
    """The verdict that a gate wrote, or the problem with it."""
    file = result.file(VERDICT_FILE)
    if file is None:
        return f"it wrote no {VERDICT_FILE}"
    try:
        verdict = GateVerdict.from_json(cas.get(file.digest))
    except ValueError as error:
        return f"its {VERDICT_FILE} is not a valid verdict: {error}"
    except StoreError as error:
        return f"its {VERDICT_FILE} is lost: {error.message}"
    if verdict.gate != action.gate:
        return f"its {VERDICT_FILE} belongs to gate '{verdict.gate}', not '{action.gate}'"
    return verdict


def read_facts(action: Action, result: ActionResult, cas: Cas) -> Mapping[str, Any]:
    """An action's facts; empty if they are missing or not a JSON object."""
    file = result.file(action.facts) if action.facts else None
    if file is None:
        return {}
    try:
        value = read_json(cas.get(file.digest))
    except (ValueError, StoreError):
        return {}
    return value if isinstance(value, dict) else {}


def tail(digest: Digest | None, cas: Cas) -> str:
    """The last lines of a stream that an action wrote."""
    text = _whole(digest, cas, last=_TAIL_BYTES)
    return "\n".join(text.rstrip().splitlines()[-_TAIL_LINES:])


def _whole(digest: Digest | None, cas: Cas, last: int = 0) -> str:
    """A stream that an action wrote, or its ``last`` bytes; empty if it is lost."""
    if digest is None:
        return ""
    try:
        return cas.get(digest)[-last:].decode(errors="replace")
    except StoreError:
        return ""


def _declared_wrongly(action: Action, result: ActionResult, cas: Cas) -> str:
    """A gate's message about its task, with the paths that users know.

    It is the last line that begins with a file of the task: Python writes warnings after it, such
    as that of a coroutine that nobody awaited. Of a very long line the beginning says where.
    """
    lines = _whole(result.stderr, cas).rstrip().splitlines()
    for line in reversed(lines):
        for path, item in action.inputs:
            if isinstance(item, Source) and line.startswith(f"{path}:"):
                return _shortened(f"{item.path}{line.removeprefix(path)}")
    return _shortened(lines[-1]) if lines else "the task is broken"


def _shortened(line: str) -> str:
    return line if len(line) <= _TAIL_BYTES else f"{line[:_TAIL_BYTES]}..."


def _lacking(action: Action, result: ActionResult) -> str:
    """The first missing declared output."""
    made = {file.path for file in result.files} | set(result.directories)
    return next((path for path in action.outputs if path not in made), "")


def _crashed(action: Action, why: str, result: ActionResult, cas: Cas) -> InfraError:
    told = marked(tail(result.stderr, cas))
    advice = "it ran without a sandbox: 'kabuild doctor' says how to get one"
    return InfraError(
        Reason.ACTION_CRASHED,
        f"{action.label} gave no {'verdict' if action.gate else 'result'}: {why}",
        hint="\n".join(filter(None, (told, "" if result.hermetic else advice))),
    )
