"""What is said of a model that a tool refused: the user's file, its line, and what helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from kabuild.neural.running import ModelFile, refused_by_tool, told

MODEL = ModelFile(Path("lib/syn.py"), "syn", b"")
FORM = "a model file has build() and inputs(generator)"


@pytest.mark.parametrize(
    ("reason", "why", "said", "hint"),
    [
        (
            "DOES_NOT_LOAD",
            "SyntaxError: invalid syntax (model.py, line 1)",
            "lib/syn.py:1: DOES_NOT_LOAD: SyntaxError: invalid syntax",
            "",
        ),
        (
            "DOES_NOT_LOAD",
            "SyntaxError: bad (/box/model.py, line 12)",
            "lib/syn.py:12: DOES_NOT_LOAD: SyntaxError: bad",
            "",
        ),
        (
            "DOES_NOT_RUN",
            "line 9: RuntimeError: shapes (3x4 and 3x4)",
            "lib/syn.py:9: DOES_NOT_RUN: RuntimeError: shapes (3x4 and 3x4)",
            "",
        ),
        (
            "NOT_EXPORTABLE",
            "torch.export refuses it: line 9: GuardError: no",
            "lib/syn.py:9: NOT_EXPORTABLE: torch.export refuses it: GuardError: no",
            "",
        ),
        ("DOES_NOT_RUN", "RuntimeError: x", "lib/syn.py: DOES_NOT_RUN", "call build()(*inputs("),
        ("NOT_EXPORTABLE", "it has", "lib/syn.py: NOT_EXPORTABLE", "torch.export.export(build()"),
        ("NEEDS_PACKAGE", "it imports 'x'", "NEEDS_PACKAGE: it imports", "toolchains/python"),
        ("NO_ENTRY", "no build()", "NO_ENTRY: no build()", FORM),
        ("NOT_REPEATABLE", "equal calls differ", "NOT_REPEATABLE: equal calls differ", ""),
    ],
)
def test_a_refusal_names_the_users_file_and_what_helps(
    reason: str, why: str, said: str, hint: str
) -> None:
    error = refused_by_tool(MODEL, reason, why)

    assert said in str(error)
    assert hint in error.hint
    assert bool(hint) == bool(error.hint)
    assert "model.py" not in str(error)


@pytest.mark.parametrize(
    ("message", "end"),
    [
        ("short", "short"),
        (f"{'word ' * 120}is old; expected 1 instead. {'Hint: try to find wh ' * 5}", "1 instead."),
        (f"{'word ' * 139}cuthe", "word …"),
        ("x" * 700, "xxx …"),
        (f"{'word ' * 139}in all (4x4)", "(4x4)"),
    ],
)
def test_a_message_that_was_cut_ends_with_a_word(message: str, end: str) -> None:
    assert told(message).endswith(end)
