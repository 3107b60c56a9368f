"""The answer to a query as text. All functions are pure and end each line with a newline."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from kabuild.analysis.query import Node
from kabuild.base.toml_text import quoted
from kabuild.model.label import Label


def format_label(labels: Sequence[Label]) -> str:
    """One label a line."""
    return "".join(f"{label}\n" for label in labels)


def format_label_kind(nodes: Sequence[Node]) -> str:
    """Kind and label a line: ``hip2hip rule //tasks/hip2hip/softmax:softmax``."""
    return "".join(f"{node.kind} {node.label}\n" for node in nodes)


def format_location(nodes: Sequence[Node]) -> str:
    """As ``format_label_kind``, after the file and line of the declaration."""
    return "".join(f"{node.position}: {node.kind} {node.label}\n" for node in nodes)


def format_json(nodes: Sequence[Node]) -> str:
    """A list of objects: label, kind, file, line, tags, deps, attrs."""
    values = [
        {
            "label": str(node.label),
            "kind": node.kind,
            "file": node.position.file,
            "line": node.position.line,
            "tags": list(node.tags),
            "deps": [str(label) for label in node.deps],
            "attrs": dict(node.attrs),
        }
        for node in nodes
    ]
    return json.dumps(values, indent=2, default=str) + "\n"


def format_build(nodes: Sequence[Node]) -> str:
    """Declarations as BUILD.toml has them, each with all of its attributes."""
    import toml  # nothing else writes tables

    encoder = toml.TomlEncoder()
    encoder.dump_funcs[str] = quoted
    texts = []
    for node in nodes:
        kind, _, role = node.kind.partition(" ")
        if role == "rule":
            declared = {key: value for key, value in node.attrs.items() if value not in (None, {})}
            table = {"name": node.label.name, **declared, "tags": list(node.tags)}
            texts.append(f"# {node.position}\n" + toml.dumps({kind: [table]}, encoder))
    return "\n".join(texts)


def format_graph(nodes: Sequence[Node]) -> str:
    """The nodes and the edges between them, in Graphviz' language."""
    shown = {node.label for node in nodes}
    lines = ["digraph kabuild {"]
    for node in nodes:
        lines.append(f'  "{node.label}";')
        lines.extend(f'  "{node.label}" -> "{label}";' for label in node.deps if label in shown)
    return "\n".join([*lines, "}", ""])


LABELS = "label"
"""The name of the format that needs no nodes."""

FORMATS: Mapping[str, Callable[[Sequence[Node]], str]] = {
    "label_kind": format_label_kind,
    "location": format_location,
    "json": format_json,
    "build": format_build,
    "graph": format_graph,
}
