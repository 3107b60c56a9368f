"""Which actions know a secret of the build: what they make may give it away."""

from __future__ import annotations

import json

from kabuild.model.action import Action, Literal, Output
from kabuild.model.graph import ActionGraph


def knowing(graph: ActionGraph, secret: str) -> frozenset[str]:
    """The labels of all actions that contain ``secret``, or depend on one that does.

    A rule tells an action something by a literal, an argument or a variable.
    """
    shapes = {secret.encode(), json.dumps(secret)[1:-1].encode()}
    shapes.add(json.dumps(secret, ensure_ascii=False)[1:-1].encode())
    known: set[str] = set()
    for action in graph:
        made = {item.producer for _, item in action.inputs if isinstance(item, Output)}
        if made & known or any(shape in told for told in _told(action) for shape in shapes):
            known.add(str(action.label))
    return frozenset(known)


def _told(action: Action) -> list[bytes]:
    texts = [*action.argv, *(value for _, value in action.env)]
    literals = [item.data for _, item in action.inputs if isinstance(item, Literal)]
    return [*literals, *(text.encode() for text in texts)]
