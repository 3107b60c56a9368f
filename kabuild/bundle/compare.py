"""Whether a rerun action gave the published result."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from kabuild.base.bounded_json import bounded_json
from kabuild.bundle.environment_diff import EnvironmentDifference
from kabuild.bundle.figures import (
    Remeasured,
    disagreement,
    is_measured,
    mean_speedups,
    other_number,
    remeasured,
)
from kabuild.bundle.manifest import Record
from kabuild.model.action import AGENT_FACTS, TRANSCRIPT, VERDICT_FILE
from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult, OutputFile
from kabuild.model.verdict import Verdict

Get = Callable[[Digest], bytes]

PASS = Verdict.PASS.value
_FIRST = ("verdict", "reason")
"""What is compared first."""
_LOGS = (AGENT_FACTS, TRANSCRIPT, "calls.jsonl")
_BY_TIME = ("configs", "not_applicable", "worst")
"""What a stage of a gate says of cases that it chose by the time that they take."""


class Word(Enum):
    """The result of a comparison.

    SAME_OUTCOME is less than REPRODUCED: with another toolchain or device, a gate has the published
    verdict and reason, or another action has the published outputs.
    """

    REPRODUCED = "reproduced"
    SAME_OUTCOME = "same outcome"
    DIFFERENT = "different"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True)
class Comparison:
    """One action, then and now.

    Attributes:
        detail: the first difference, or why there is none.
        remedies: how to make bytes comparable.
        figures: of a measurement, what each config's speedup was and is.
    """

    record: Record
    word: Word
    detail: str = ""
    remedies: tuple[str, ...] = ()
    figures: tuple[Remeasured, ...] = ()


def compare(
    record: Record,
    result: ActionResult,
    obstacle: EnvironmentDifference | None,
    get: Get,
    *,
    derived: bool = False,
) -> Comparison:
    """Compare the outputs of a rerun with the published ones.

    For a measurement: the verdict, the names of all outputs, and each config's figures (see
    ``bundle.figures``). For all other actions: every output, byte for byte. That an action measures
    is a claim of the bundle, so a gate that passed without a speedup is compared like the others.
    Of an agent's session the report and the logs hold times, so only their names and the solution
    are compared; of a gate that passed, which cases it chose by the time that they take.
    With an ``obstacle`` only verdicts are compared; other differences are reported. An action that
    is ``derived`` from other verdicts alone has the same numbers in spite of it.
    """
    figures: tuple[Remeasured, ...] = ()
    if record.timed:
        then, now = (_verdict(item.file(VERDICT_FILE), get) for item in (record, result))
        difference = _measured(record, result, then, now, get)
        means, figures = mean_speedups(then, now), remeasured(then, now)
        agreed = "same verdict, intervals overlap" + (f": {means}" if means else "")
    else:
        difference, agreed = _exact(record, result, get)
    word, said, remedies = _conclusion(
        record, result, obstacle, get, difference=difference, agreed=agreed, derived=derived
    )
    return Comparison(record, word, said, remedies, figures)


def _conclusion(
    record: Record,
    result: ActionResult,
    obstacle: EnvironmentDifference | None,
    get: Get,
    *,
    difference: str,
    agreed: str,
    derived: bool,
) -> tuple[Word, str, tuple[str, ...]]:
    """The word for what was found, what there is to say, and how to make bytes comparable."""
    if obstacle is None or not (obstacle.in_key or difference):
        word = Word.DIFFERENT if difference else Word.REPRODUCED
        return word, difference or agreed, ()
    if derived and (other := _another_number(record, result, get)):
        return Word.DIFFERENT, f"{other}; {obstacle.text}", obstacle.remedies
    if record.file(VERDICT_FILE) is None and result.file(VERDICT_FILE) is None:
        word = Word.NOT_COMPARABLE if difference else Word.SAME_OUTCOME
    elif another := _another_verdict(record, result, get):
        return Word.DIFFERENT, f"{another}; {obstacle.text}", obstacle.remedies
    else:
        word = Word.SAME_OUTCOME
    said = (_ending(result, get), obstacle.text, difference or agreed)
    return word, "; ".join(filter(None, said)), obstacle.remedies


def _ending(result: ActionResult, get: Get) -> str:
    """Verdict and reason of a gate, such as ``"FAIL" "WRONG_RESULT"``; empty for other actions."""
    verdict = _verdict(result.file(VERDICT_FILE), get)
    return " ".join(_short(verdict[key]) for key in _FIRST if verdict.get(key))


def _another_verdict(record: Record, result: ActionResult, get: Get) -> str:
    """How verdict or reason differ; empty if they are equal."""
    before, after = record.file(VERDICT_FILE), result.file(VERDICT_FILE)
    if before is None or after is None:
        return "" if before is after else f"no {VERDICT_FILE} {'now' if before else 'then'}"
    then, now = _verdict(before, get), _verdict(after, get)
    differing = (key for key in _FIRST if then.get(key) != now.get(key))
    return next(
        (f"{key} was {_short(then.get(key))}, is {_short(now.get(key))}" for key in differing), ""
    )


def _another_number(record: Record, result: ActionResult, get: Get) -> str:
    """The first JSON output that is missing then, or the first number in one that differs."""
    for file in sorted(result.files, key=lambda file: file.path):
        before = record.file(file.path)
        if before is None or file.path in record.withheld:
            return f"{file.path} was made now, but not then"
        then, now = (_verdict(item, get) for item in (before, file))
        if file.path.endswith(".json") and (found := other_number(then, now)):
            return f"{file.path}: {found}"
    return ""


def _verdict(file: OutputFile | None, get: Get) -> dict[str, Any]:
    """The content of a verdict; empty if the bundle holds something else in its place."""
    try:
        value = bounded_json(get(file.digest)) if file else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _bytes(
    record: Record, result: ActionResult, get: Get, but: Callable[[str], bool] | None = None
) -> str:
    """The first output that differs, and where in it; empty if none does.

    Files of whose paths ``but`` is true may have other content.
    """
    then = {file.path: file for file in record.files}
    now = {file.path: file for file in result.files}
    for path in sorted(then.keys() | now.keys()):
        if path not in now:
            return f"{path} was made then, but not now"
        if path not in then:
            return f"{path} was made now, but not then"
        if then[path].executable != now[path].executable:
            return f"{path} is executable only {'then' if then[path].executable else 'now'}"
        if then[path].digest != now[path].digest and not (but and but(path)):
            if path in record.withheld:
                return f"{path} differs; the bundle leaves out what it was"
            return f"{path}: {_first_difference(path, then[path].digest, now[path].digest, get)}"
    return ""


def _exact(record: Record, result: ActionResult, get: Get) -> tuple[str, str]:
    """The first difference that counts, empty if none does, and what is equal then."""
    difference, agreed = _bytes(record, result, get), "byte for byte"
    if difference and record.file(AGENT_FACTS) and result.file(AGENT_FACTS):
        difference = _bytes(record, result, get, _LOGS.__contains__)
        agreed = "the same solution; how the session went is not compared"
    elif difference and not _bytes(record, result, get, VERDICT_FILE.__eq__):
        then, now = (_verdict(item.file(VERDICT_FILE), get) for item in (record, result))
        if chosen := _chosen_by_time(then, now):
            difference, agreed = "", f"the same verdict; as there was time for: {chosen}"
    return difference, agreed


def _chosen_by_time(then: dict[str, Any], now: dict[str, Any]) -> str:
    """What two verdicts tried that depends on time; empty if they differ in anything else."""
    if then.get("verdict") != PASS:
        return ""
    try:
        cases = [dict(case) for case in then["cases"]], [dict(case) for case in now["cases"]]
    except (KeyError, TypeError, ValueError):
        return ""
    tried = []
    for old, new in zip(*cases, strict=False):
        if old.get("timely") is True and new.get("timely") is True and old != new:
            tried += [f"{_short(old.get('configs'))} then, {_short(new.get('configs'))} now"]
            for case in (old, new):
                for key in _BY_TIME:
                    case.pop(key, None)
    same = {**then, "summary": "", "cases": cases[0]} == {**now, "summary": "", "cases": cases[1]}
    return "; ".join(tried) if same else ""


def _is_json(path: str) -> bool:
    return path.endswith(".json")


def _first_difference(path: str, then: Digest, now: Digest, get: Get) -> str:
    old, new = get(then), get(now)
    if path.endswith(".json"):
        try:
            found = next(_differences(bounded_json(old), bounded_json(new), ""), "")
        except ValueError:
            found = ""
        if found:
            return found
    same = next(
        (i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )
    return f"differs from byte {same} on ({len(old)} bytes then, {len(new)} now)"


def _differences(old: Any, new: Any, where: str) -> Iterator[str]:
    """Where two JSON values differ, most important first."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in (*_FIRST, *sorted((old.keys() | new.keys()) - {*_FIRST})):
            yield from _differences(old.get(key), new.get(key), f"{where}.{key}" if where else key)
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{where} has {len(old)} entries then, {len(new)} now"
        for index, pair in enumerate(zip(old, new, strict=False)):
            yield from _differences(*pair, f"{where}[{index}]")
    elif old != new:
        yield f"{where} was {_short(old)}, is {_short(new)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _measured(
    record: Record, result: ActionResult, then: dict[str, Any], now: dict[str, Any], get: Get
) -> str:
    """How a measurement disagrees; empty if it agrees."""
    if another := _another_verdict(record, result, get):
        return another
    measures = not record.gate or now.get("verdict") != PASS or is_measured(now)
    if other := _bytes(record, result, get, _is_json if measures else None):
        return other
    return disagreement(then, now, whole=bool(record.gate))
