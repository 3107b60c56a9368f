"""``kabuild aquery``: actions, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from kabuild.base.printing import escaped
from kabuild.execution.forecast import Forecast
from kabuild.model.action import Literal, Output, Source

SCHEMA = 1


def render_actions_json(foreseen: Iterable[Forecast]) -> str:
    """``{"schema": 1, "actions": [...]}``, one object per action, dependencies first."""
    actions = [describe(item) for item in foreseen]
    return json.dumps({"schema": SCHEMA, "actions": actions}, indent=2)


def render_actions(foreseen: Iterable[Forecast]) -> str:
    """A paragraph per action."""
    return "\n\n".join(_paragraph(describe(item)) for item in foreseen)


def describe(item: Forecast) -> dict[str, Any]:
    """One action with everything in its key, and its forecast."""
    action = item.action
    known = item.settled.key if item.settled else item.prepared.key if item.prepared else None
    nodes = dict(item.prepared.root.walk()) if item.prepared else {}
    return {
        "label": str(action.label),
        "mnemonic": action.mnemonic,
        "gate": action.gate or None,
        "state": item.word,
        "key": known.hash if known else None,
        "command": list(action.argv),
        "environment": dict(action.env),
        "platform": {"name": action.platform.name, **dict(action.platform.properties)},
        "toolchains": [toolchain.name for toolchain in action.toolchains],
        "inputs": [
            {"path": path, "from": _origin(artifact), "digest": _digest(nodes.get(path))}
            for path, artifact in action.inputs
        ],
        "outputs": list(action.outputs),
        "requires": [str(label) for label in action.requires],
        "timeout": action.limits.timeout,
    }


def _origin(artifact: Source | Output | Literal) -> str:
    if isinstance(artifact, Source):
        return f"{artifact.root}:{artifact.path}"
    if isinstance(artifact, Output):
        return f"{artifact.producer} {artifact.path}"
    return f"{len(artifact.data)} literal bytes"


def _digest(node: Any) -> str | None:
    return node.digest.hash if node is not None else None


def _paragraph(action: dict[str, Any]) -> str:
    platform = action["platform"]
    lines = [
        f"{action['label']}  {action['mnemonic']}  {action['state']}",
        f"  key       {action['key'] or 'unknown until its inputs are made'}",
        f"  command   {escaped(' '.join(action['command']))}",
        "  platform  " + " ".join(f"{name}={value}" for name, value in platform.items()),
    ]
    lines += [f"  env       {name}={value}" for name, value in action["environment"].items()]
    lines += [f"  toolchain {name}" for name in action["toolchains"]]
    lines += [f"  input     {item['path']}  <- {item['from']}" for item in action["inputs"]]
    lines += [f"  output    {path}" for path in action["outputs"]]
    return "\n".join(lines)
