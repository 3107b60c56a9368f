"""``model_tasks.py MODEL.py WANTED.json OUT.json [--device=MODULE]``: tasks of a model's parts.

The model's own code runs in here, in a sandbox. What is written is data, which kabuild checks.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from imported.boundary import LeftOutError
from modelled.declaring import part_task, whole_task
from modelled.facts import write_facts
from modelled.graph import Graph, export
from modelled.parts import Part, divide
from modelled.ranges import recorded
from modelled.step_task import step_task
from modelled.units import Unit, find_units, input_shapes
from modelled.user_model import ModelError, device_of, load
from modelled.writing import constants_text, graph_text

SCHEMA = 2


def tasks(path: Path, wanted: Mapping[str, Any], device: str = "cpu") -> dict[str, Any]:
    """The tasks of a model. Raises ModelError."""
    title = str(wanted["name"])
    model = load(path, device)
    graph = export(model)
    units = {unit.name: unit for unit in find_units(graph)}
    if unknown := [name for name in wanted["parts"] if name not in units]:
        raise ModelError("UNKNOWN_PART", f"no part is called '{unknown[0]}'")
    chosen = [units[name] for name in wanted["parts"]]
    ranges = recorded(graph, model, chosen)
    found, absent = [], []
    for unit in chosen:
        try:
            found.append(part_task(unit, ranges[unit.name], title))
        except LeftOutError as error:
            absent.append({"name": unit.name, "reason": error.reason, "why": error.why})
    text = path.read_text()
    return {
        "schema": SCHEMA,
        "parts": found,
        "left_out": absent,
        "whole": whole_task(model, text, title),
        "step": step_task(model, text, title),
        "graph": _graph(graph, list(units.values()), found),
    }


def _graph(graph: Graph, units: Sequence[Unit], found: Sequence[Mapping[str, Any]]) -> Any:
    """The model's forward as text: it calls its parts, those that are tasks by the tasks' names."""
    covered = {task["name"]: {_tuples(shapes) for shapes in task["covered"]} for task in found}
    names: dict[tuple[object, ...], tuple[Part, str]] = {}
    functions: dict[str, str] = {}
    for unit in units:
        for part in unit.parts:
            name = f"part_{unit.name}"
            if input_shapes(part) not in covered.get(unit.name, ()):
                name = f"{name}_as_it_is"
            functions[name] = unit.function.text_as_it_is(name)
            names[part.computing] = (part, name)
    return {
        "forward": graph_text(graph, [names[part.computing] for part in divide(graph)]),
        "held": [[held.owner, held.name] for held in graph.held.values()],
        "constants": constants_text(graph),
        "functions": functions,
    }


def _tuples(shapes: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(shape) for shape in shapes)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the tasks, or why there are none."""
    parser = argparse.ArgumentParser(description="parts of a model as tasks")
    parser.add_argument("model", type=Path)
    parser.add_argument("wanted", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="", help="the module that says PyTorch's device")
    options = parser.parse_args(arguments)
    wanted = json.loads(options.wanted.read_text())
    write_facts(options.out, lambda: tasks(options.model, wanted, device_of(options.device)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
