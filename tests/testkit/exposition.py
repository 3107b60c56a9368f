"""What is wrong with numbers for Prometheus, by the rules of its text format and of its names."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

UNITS = ("seconds", "bytes", "actions", "files", "slots", "fds")
STATES = ("info", "leased", "lost")
"""The last word of a name whose value is 0 or 1."""


def problems(text: str) -> list[str]:
    """Everything that is wrong with ``text``. Raises ValueError if it cannot be parsed."""
    return [*_misdescribed(text), *_misnamed([*text_string_to_metric_families(text)])]


def _misdescribed(text: str) -> Iterator[str]:
    """Samples before which there is no HELP with a text, or no TYPE; and wrong descriptions."""
    said: dict[str, set[str]] = {"HELP": set(), "TYPE": set()}
    for line in text.splitlines():
        if line.startswith("# "):
            _, what, name, rest = line.split(" ", 3)
            if name in said[what]:
                yield f"{name}: {what} twice"
            if rest.strip():
                said[what].add(name)
            if what == "TYPE" and (rest == "counter") is not name.endswith("_total"):
                yield f"{name}: counters end in _total, and nothing else does"
            continue
        name = line.partition(" ")[0].partition("{")[0]
        family = {name, *(name.removesuffix(end) for end in ("_bucket", "_count", "_sum"))}
        for what, names in said.items():
            if not family & names:
                yield f"{name}: no {what}"


def _misnamed(families: list[Metric]) -> Iterator[str]:
    for family in families:
        unit = family.name.rpartition("_")[2]
        if unit not in UNITS + STATES:
            yield f"{family.name}: no unit"
        if unit in STATES and any(sample.value not in {0, 1} for sample in family.samples):
            yield f"{family.name}: neither 0 nor 1"
