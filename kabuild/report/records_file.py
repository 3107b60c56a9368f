"""Records in a file: ``records.json``.

    {"schema": "kabuild/records/2",
     "records": [{"task": "//tasks/hip2hip/softmax", "task_digest": "<SHA-256 of what it asks>",
                  "config": "f32 rows=4096 cols=4096",
                  "machine": "cuda: NVIDIA H200", "arch": "sm_90",
                  "nanoseconds": 35900.0, "low": 35700.0, "high": 36100.0,
                  "speedup": 1.40, "speedup_low": 1.39, "speedup_high": 1.41,
                  "agent": "expert", "bundle": "<SHA-256 of its manifest>",
                  "date": "2026-01-31", "broken": [<the same of those before it, oldest first>]}]}

``low`` and ``high`` follow from the other figures, and are not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from kabuild.base.bounded_json import bounded_json
from kabuild.base.errors import KabuildError, Reason, UsageError
from kabuild.base.fs import atomic_write
from kabuild.base.reading import MOST_BYTES, read_bounded
from kabuild.model.figure import positive
from kabuild.model.label import Label
from kabuild.model.speedup import Speedup
from kabuild.report.records import Record, Time

SCHEMA = "kabuild/records/2"

_DIGEST, _DATE = re.compile(r"[0-9a-f]{64}"), re.compile(r"(\d{4}-\d\d-\d\d)?")
_DIGEST_OR_NONE = re.compile(r"([0-9a-f]{64})?")


def read_records(path: Path) -> list[Record]:
    """The records in a file. Raises UsageError for anything else, and ``OSError``."""
    try:
        data = read_bounded(path, MOST_BYTES)
        if not data.strip():
            raise ValueError("it is empty")
        told = bounded_json(data)
        if told["schema"] != SCHEMA:
            raise ValueError(f"its schema is {told['schema']!r}; this kabuild reads {SCHEMA!r}")
        return [_record(item, f"records[{place}]") for place, item in enumerate(told["records"])]
    except JSONDecodeError as error:
        what = f"{path}:{error.lineno}: it is not JSON: {error.msg}"
    except (KeyError, TypeError):
        what = f"{path} is not a file of records"
    except ValueError as error:
        what = f"{path}: {error}"
    hint = "kabuild records BUNDLE... --file=FILE --update makes one"
    raise UsageError(Reason.BAD_FLAG, what, hint=hint)


def write_records(path: Path, records: Sequence[Record]) -> None:
    """Write a file of records. Raises ``OSError``."""
    atomic_write(path, (json.dumps(document(records), indent=1) + "\n").encode())


def document(records: Sequence[Record]) -> dict[str, Any]:
    """The content of the file."""
    return {"schema": SCHEMA, "records": [to_json(record) for record in records]}


def to_json(record: Record) -> dict[str, Any]:
    """One record."""
    return {**_time_json(record.best), "broken": [_time_json(time) for time in record.broken]}


def _time_json(time: Time) -> dict[str, Any]:
    return {
        "task": time.task,
        "task_digest": time.task_digest,
        "config": time.config,
        "machine": time.machine[0],
        "arch": time.machine[1],
        "nanoseconds": time.nanoseconds,
        "low": time.low,
        "high": time.high,
        **time.speedup.to_json(),
        "agent": time.agent,
        "bundle": time.bundle,
        "date": time.date,
    }


def _record(told: Mapping[str, Any], where: str) -> Record:
    broken = enumerate(told["broken"])
    line = [_time(item, f"{where}.broken[{place}]") for place, item in broken]
    best = _time(told, where)
    if any(time.of != best.of for time in line):
        raise ValueError(f"{where}.broken belongs to another task, config or machine")
    return Record(best, tuple(line))


def _time(told: Mapping[str, Any], where: str) -> Time:
    speedup = Speedup.read(told)
    taken = positive(told, "nanoseconds")
    if taken is None or speedup is None or speedup.ends is None:
        raise ValueError(f"{where} has no time with an interval")
    try:
        task = Label.parse(_text(told, "task", where)).short
    except KabuildError as error:
        raise ValueError(f"{where}.task: {error.message}") from None
    return Time(
        task=task,
        task_digest=_text(told, "task_digest", where, _DIGEST_OR_NONE),
        config=_text(told, "config", where),
        machine=(_text(told, "machine", where), _text(told, "arch", where)),
        nanoseconds=taken,
        speedup=speedup,
        agent=_text(told, "agent", where),
        bundle=_text(told, "bundle", where, _DIGEST),
        date=_text(told, "date", where, _DATE),
    )


def _text(
    told: Mapping[str, Any], name: str, where: str, form: re.Pattern[str] | None = None
) -> str:
    value = told[name]
    if not isinstance(value, str) or (form and not form.fullmatch(value)):
        raise ValueError(f"{where}.{name} is {value!r}")
    return value
