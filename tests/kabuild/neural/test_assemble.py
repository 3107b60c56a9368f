"""A model with other kernels as one file."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from kabuild.neural.assemble import assemble
from kabuild.neural.packages import Graph, Known, Place

TEXTS = (
    "# plain, 'single', \"double\" and a backslash: \\\n",
    "# \U0001f600 needs more than 16 bits, \xe9 does not\n",
    "x = '\u2028 \x85 \x0c'\r\ny = 1",
    "",
)


def texts_in(made: str) -> list[Any]:
    """The texts of all modules in an assembled file."""
    calls = [node for node in ast.walk(ast.parse(made)) if isinstance(node, ast.Call)]
    modules = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "_module"]
    return [ast.literal_eval(call.args[1]) for call in modules]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_in_the_file_as_it_was(text: str) -> None:
    place = Place(0.5, 0.5, (1,), is_task=True)
    known = Known("m", "cpu", {"norm": place}, Graph("", (), (), {}))

    made = assemble(known, text, {"norm": text})

    made.encode()
    assert sorted(texts_in(made)) == [text, text]
