"""Whether an action that ran again gave what was published."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from kabuild.bundle.manifest import Record
from kabuild.model.action import VERDICT_FILE
from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult

Get = Callable[[Digest], bytes]

_FIRST = ("verdict", "reason")
"""What matters most of all that may differ."""


class Word(Enum):
    """What a comparison comes to."""

    REPRODUCED = "reproduced"
    DIFFERENT = "different"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True)
class Comparison:
    """One action, then and now. ``detail`` names the first difference, or why there is none."""

    record: Record
    word: Word
    detail: str = ""


def compare(record: Record, result: ActionResult, obstacle: str, get: Get) -> Comparison:
    """Compare the outputs of a rerun with the published ones.

    Of an action that measured, the verdict and each config's ratio: equal where
    the two 95 % intervals overlap. Of all others, every output byte for byte. With an
    ``obstacle``, bytes and times are not comparable; what is equal all the same is said.
    """
    if record.timed:
        difference = _measured(record, result, get)
        agreed = "same verdict, intervals overlap"
    else:
        difference = _bytes(record, result, get)
        agreed = "byte for byte"
    if obstacle:
        return Comparison(record, Word.NOT_COMPARABLE, f"{obstacle}; {difference or agreed}")
    if difference:
        return Comparison(record, Word.DIFFERENT, difference)
    return Comparison(record, Word.REPRODUCED, agreed)


def _bytes(record: Record, result: ActionResult, get: Get) -> str:
    """The first output that differs, and where in it; empty if none does."""
    then = {file.path: file for file in record.files}
    now = {file.path: file for file in result.files}
    for path in sorted(then.keys() | now.keys()):
        if path not in now:
            return f"{path} was made then, and not now"
        if path not in then:
            return f"{path} was made now, and not then"
        if then[path].executable != now[path].executable:
            return f"{path} is executable only {'then' if then[path].executable else 'now'}"
        if then[path].digest != now[path].digest:
            return f"{path}: {_first_difference(path, then[path].digest, now[path].digest, get)}"
    return ""


def _first_difference(path: str, then: Digest, now: Digest, get: Get) -> str:
    old, new = get(then), get(now)
    if path.endswith(".json"):
        try:
            found = next(_differences(json.loads(old), json.loads(new), ""), "")
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
    """Where two JSON values differ, first things first."""
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


def _measured(record: Record, result: ActionResult, get: Get) -> str:
    """How a measurement disagrees; empty if it does not."""
    before, after = record.file(VERDICT_FILE), result.file(VERDICT_FILE)
    if before is None or after is None:
        return "" if before is after else f"no {VERDICT_FILE} {'now' if before else 'then'}"
    then, now = json.loads(get(before.digest)), json.loads(get(after.digest))
    for name in ("verdict", "reason"):
        if then.get(name) != now.get(name):
            return f"{name} was {then.get(name)}, is {now.get(name)}"
    known = {case.get("config"): case for case in now.get("cases", [])}
    for case in then.get("cases", []):
        again = known.get(case.get("config"))
        if again is None:
            return f"{case.get('config')} was measured then, and not now"
        if not _overlap(case, again):
            return f"{case.get('config')}: {_interval(case)} then, {_interval(again)} now"
    return ""


def _overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    if not all(isinstance(c.get(k), int | float) for c in (one, other) for k in ("low", "high")):
        return one.get("speedup") == other.get("speedup")
    return bool(one["low"] <= other["high"] and other["low"] <= one["high"])


def _interval(case: dict[str, Any]) -> str:
    if isinstance(case.get("low"), int | float) and isinstance(case.get("high"), int | float):
        return f"{case.get('speedup', 0.0):.3g}x ({case['low']:.3g} to {case['high']:.3g})"
    return f"{case.get('speedup')}"
