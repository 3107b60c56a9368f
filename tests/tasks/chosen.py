"""Which tasks a test run judges: those that changed, and a few in turn.

A record beside the stores of test runs has a digest of each task's files, as they were when it
was last judged or first seen. With no record only the sample is judged, and
``KABUILD_TEST_SUITE=all``, which ``make test-all`` sets, judges all.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.tasks.declared import REPOSITORY, Declared
from tests.testkit.kept import ROOT

SAMPLE = 2
"""Tasks that are judged in turn, whether they changed or not."""

STARTERS = 1
"""The same of the few starters, for each way in which they are judged: they come up often."""

MOST = 4
"""Changed tasks that one run judges; the others stay changed, for the runs after it."""


@dataclass(frozen=True)
class Choice:
    """The labels that are judged, and why; ``put_off`` changed too, and are not judged yet."""

    changed: tuple[str, ...]
    sample: tuple[str, ...]
    put_off: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """All that are judged, each once."""
        return tuple(dict.fromkeys((*self.changed, *self.sample)))

    def __str__(self) -> str:
        said = f"judged: {len(self.changed)} changed, sample {' '.join(self.sample) or 'none'}"
        return f"{said}; changed and put off: {' '.join(self.put_off) or 'none'}"


def choose(
    digests: Mapping[str, str],
    recorded: Mapping[str, str] | None,
    turn: str,
    *,
    every: bool,
    sample: int = SAMPLE,
) -> Choice:
    """Choose among the labels of ``digests``.

    ``turn`` names the commit or day of the sample, which has ``sample`` tasks.
    """
    if every:
        return Choice(tuple(digests), ())
    first = first_in_turn(digests, sample, turn)
    changed: Sequence[str] = ()
    if recorded is not None:
        changed = [label for label in digests if recorded.get(label) != digests[label]]
    return Choice(tuple(changed[:MOST]), tuple(first), tuple(changed[MOST:]))


def first_in_turn(labels: Iterable[str], count: int, turn: str) -> list[str]:
    """The first ``count`` of ``labels``, in an order that is that of ``turn``."""
    return sorted(labels, key=lambda label: _rank(turn, label))[:count]


@contextlib.contextmanager
def judged_in_turn(name: str, tasks: Sequence[Declared]) -> Iterator[tuple[Declared, ...]]:
    """Those of ``tasks`` that this run judges. They count as judged unless the block raises.

    ``name`` is that of the record, and of the turn: each kind of judging has its own.
    """
    record = ROOT / f"{name}.json"
    recorded = read_record(record)
    digests = {task.label: digest(task.package) for task in tasks}
    of_its_kind = f"{turn()} {name}"
    choice = choose(digests, recorded, of_its_kind, every=every(), sample=STARTERS)
    yield tuple(task for task in tasks if task.label in choice.labels)
    record.write_text(json.dumps(to_record(digests, recorded, choice, failed=[]), indent=1))


def turn() -> str:
    """The commit that is tested; the day where there is no repository."""
    head = ["git", "rev-parse", "HEAD"]
    done = subprocess.run(head, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.stdout.strip() or time.strftime("%Y-%m-%d")


def every() -> bool:
    """Whether all are judged: by ``make test-all``."""
    return os.environ.get("KABUILD_TEST_SUITE") == "all"


def to_record(
    digests: Mapping[str, str],
    recorded: Mapping[str, str] | None,
    choice: Choice,
    failed: Sequence[str],
) -> dict[str, str]:
    """The record for the next run. What failed or was put off counts as changed again."""
    before = {label: (recorded or {}).get(label, "") for label in choice.put_off}
    return {**digests, **before, **dict.fromkeys(failed, "")}


def read_record(file: Path) -> dict[str, str] | None:
    """The record of earlier runs; None if there is none."""
    try:
        found: dict[str, str] = json.loads(file.read_text())
    except (OSError, ValueError):
        return None
    return found


def digest(package: Path) -> str:
    """A digest of all files of a task."""
    code = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            content = path.read_bytes()
            code.update(f"{path.relative_to(package)}\0{len(content)}\0".encode() + content)
    return code.hexdigest()


def _rank(turn: str, label: str) -> str:
    return hashlib.sha256(f"{turn}\0{label}".encode()).hexdigest()
