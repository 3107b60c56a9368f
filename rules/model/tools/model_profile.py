"""``model_profile.py MODEL.py OUT.json [--device=MODULE]``: where the time of a model goes.

The model's own code runs in here, in a sandbox. What is written is data, which kabuild checks.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from modelled.clocks import bandwidth, clock_of, throughput
from modelled.facts import write_facts
from modelled.graph import Graph, Kind, bytes_of, export, kind_of, name_of, path_of
from modelled.measuring import measure, node_operations
from modelled.step_profile import step_profile
from modelled.units import Unit, find_units, traffic
from modelled.user_model import device_of, load
from torch.fx import Node

SCHEMA = 1
_MODULES = 8


def profile(path: Path, device: str) -> dict[str, Any]:
    """The profile of a model. Raises ModelError."""
    model = load(path, device)
    graph = export(model)
    clock = clock_of(device)
    times = measure(graph, model, clock)
    seconds = times.nodes
    operations = node_operations(graph, model)
    total = sum(seconds.values())
    units = find_units(graph)
    dtypes = sorted({str(kind) for unit in units for kind in unit.dtypes if kind.is_floating_point})
    kinds = {name: getattr(torch, name.partition(".")[2]) for name in dtypes}
    roofs = {
        "bytes_per_second": bandwidth(clock, device),
        "flops_per_second": {
            name.partition(".")[2]: throughput(clock, device, kind) for name, kind in kinds.items()
        },
    }
    rows = [_row(unit, seconds, operations, total, roofs) for unit in units]
    return {
        "schema": SCHEMA,
        "device": device,
        "torch": str(torch.__version__),
        "threads": torch.get_num_threads() if device == "cpu" else 0,
        "eager_seconds": times.eager,
        "graph_seconds": total,
        "roofs": roofs,
        "parts": sorted(rows, key=lambda row: (-row["seconds"], row["name"])),
        "operators": _operators(graph, seconds, total),
        "flame": _flame(graph, seconds),
        "training": step_profile(model, clock) if hasattr(model.code, "loss") else None,
    }


def _row(
    unit: Unit,
    seconds: Mapping[Node, float],
    operations: Mapping[Node, int],
    total: float,
    roofs: Mapping[str, Any],
) -> dict[str, Any]:
    """The facts of a unit; figures cover all its calls in one run of the model."""
    spent = sum(seconds[node] for part in unit.parts for node in part.computing)
    moved = sum(map(traffic, unit.parts))
    done = sum(operations[node] for part in unit.parts for node in part.computing)
    floating = [str(kind).partition(".")[2] for kind in unit.dtypes if kind.is_floating_point]
    peak = roofs["flops_per_second"].get(floating[0]) if floating else None
    by_memory = moved / roofs["bytes_per_second"]
    by_compute = done / peak if peak else 0.0
    roof = min(spent, max(by_memory, by_compute))
    paths = [path_of(part.computing[0])[-1:] for part in unit.parts]
    return {
        "name": unit.name,
        "kind": "group" if unit.fused and len(unit.operators) > 1 else "operator",
        "operators": [*unit.operators],
        "calls": len(unit.parts),
        "seconds": spent,
        "share": spent / total,
        "bytes": moved,
        "flops": done,
        "bound": "memory" if by_memory >= by_compute else "compute",
        "roof_seconds": roof,
        "roof_share": roof / spent if spent else 1.0,
        "gain": total / (total - spent + roof),
        "dtypes": [str(kind).partition(".")[2] for kind in unit.dtypes],
        "shapes": [
            {"inputs": [list(shape) for shape in shapes], "calls": calls}
            for shapes, calls in unit.shapes.most_common()
        ],
        "modules": [path[0][0] or "(the model)" for path in paths if path][:_MODULES],
    }


def _operators(graph: Graph, seconds: Mapping[Node, float], total: float) -> list[dict[str, Any]]:
    """The time by operator's name, largest first."""
    found: dict[str, dict[str, Any]] = {}
    for node in graph.nodes:
        name = name_of(node)
        row = found.setdefault(name, {"name": name, "calls": 0, "seconds": 0.0, "bytes": 0})
        row["calls"] += 1
        row["seconds"] += seconds[node]
        if kind_of(node) is not Kind.VIEW:
            row["bytes"] += sum(map(bytes_of, (node, *node.all_input_nodes)))
    rows = [{**row, "share": row["seconds"] / total} for row in found.values()]
    return sorted(rows, key=lambda row: (-row["seconds"], row["name"]))


def _flame(graph: Graph, seconds: Mapping[Node, float]) -> dict[str, Any]:
    """The time as a tree: modules, then operators."""
    top: dict[str, Any] = {"name": "model", "seconds": 0.0, "children": {}}
    for node in graph.nodes:
        here = top
        here["seconds"] += seconds[node]
        before = ""
        names = []
        for path, kind in path_of(node):
            if path:
                names.append(f"{path.removeprefix(before).lstrip('.')} {kind}")
                before = path
        for name in (*names, name_of(node)):
            fresh = {"name": name, "seconds": 0.0, "children": {}}
            here = here["children"].setdefault(name, fresh)
            here["seconds"] += seconds[node]
    return _listed(top)


def _listed(box: dict[str, Any]) -> dict[str, Any]:
    return {**box, "children": [_listed(child) for child in box["children"].values()]}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the profile, or why there is none."""
    parser = argparse.ArgumentParser(description="profile of a model")
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="", help="the module that says PyTorch's device")
    options = parser.parse_args(arguments)
    write_facts(options.out, lambda: profile(options.model, device_of(options.device)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
