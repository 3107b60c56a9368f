"""What the stages have left in a folder, where a stage may have been run more than once.

``tuner-2.json`` goes on where ``tuner.json`` ended, with other tasks as a rule. Of a candidate, the
last run of ``cheats`` counts that got as far as to judge it. Of models, all runs are kept; of
``modelled``, ``ordered`` and ``given``, the times of a second run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_NOT_JUDGED = ("CANCELLED", "absent", "None")


def read(folder: Path) -> dict[str, Any]:
    """By name of the stage, what it has left."""
    found: dict[str, Any] = {}
    for file in sorted(folder.glob("*.json"), key=_number):
        stage, again, _ = file.stem.partition("-")
        one = json.loads(file.read_bytes())
        if stage == "tuner":
            one = _with_bundles(one, f"{file.stem}.kab")
        if stage == "model":
            one = {name: [run] for name, run in one.items()}
        found[stage] = _GO_ON[stage](found[stage], one) if again else one
    return found


def _number(file: Path) -> tuple[str, int]:
    stage, _, number = file.stem.partition("-")
    return stage, int(number or 1)


def _with_bundles(run: Mapping[str, Any], file: str) -> dict[str, Any]:
    """One run of the tuner, whose bundle lies beside it as ``file``."""
    bundle = run.get("bundle", {})
    return {**run, "bundles": {file: bundle["tasks"]} if "publish" in bundle else {}}


def _more_tasks(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    if earlier["seconds_each"] != later["seconds_each"]:
        raise ValueError("runs of the tuner with other times for a task are not one")
    tasks = {**earlier["tasks"], **later["tasks"]}
    not_begun = {*earlier["not_begun"], *later["not_begun"]} - tasks.keys()
    return {
        "seconds_each": later["seconds_each"],
        "seconds": earlier["seconds"] + later["seconds"],
        "beaten": sum(row["beaten"] for row in tasks.values()),
        "of": len(tasks),
        "tasks": tasks,
        "not_begun": sorted(not_begun),
        "bundles": {**earlier["bundles"], **later["bundles"]},
    }


def _judged_again(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    judged = {name: row for name, row in later.items() if not row["got"].endswith(_NOT_JUDGED)}
    return {**earlier, **judged}


def _measured_again(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """By model, its runs."""
    names = [*earlier, *(name for name in later if name not in earlier)]
    return {name: [*earlier.get(name, []), *later.get(name, [])] for name in names}


def _timed_again(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    return {**earlier, "again": later["timed"]}


def _given_again(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    return {**earlier, "again": later["tasks"]}


_GO_ON = {
    "tuner": _more_tasks,
    "cheats": _judged_again,
    "model": _measured_again,
    "modelled": _timed_again,
    "ordered": _timed_again,
    "given": _given_again,
}
