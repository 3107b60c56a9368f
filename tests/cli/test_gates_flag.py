"""``--gates``: which gates are meant, by name or as changes of the usual ones."""

from __future__ import annotations

import click
import pytest

from kabuild.base.errors import UsageError
from kabuild.cli.flags import read_gates
from kabuild.model.options import GATES


@pytest.mark.parametrize(
    ("text", "gates"),
    [
        ("", ()),
        ("unseen,compile", ("compile", "unseen")),
        ("sanitize", ("sanitize",)),
        ("+sanitize", (*GATES, "sanitize")),
        ("-perf,-unseen", ("compile", "correctness", "score")),
        ("-perf, +sanitize", ("compile", "correctness", "unseen", "score", "sanitize")),
        ("+sanitize,+retention,-perf", (*GATES[:2], *GATES[3:], "retention", "sanitize")),
        ("+sanitize,-sanitize", GATES),
    ],
)
def test_gates_are_named_or_changed(text: str, gates: tuple[str, ...]) -> None:
    """``+`` and ``-`` change the usual ones; the order is that of judging."""
    command = click.Command("test")

    assert read_gates(click.Context(command), click.Option(["--gates"]), text) == gates


def test_some_gate_has_to_be_left() -> None:
    everything = ",".join(f"-{gate}" for gate in GATES)

    with pytest.raises(UsageError, match="leaves no gate"):
        read_gates(click.Context(click.Command("test")), click.Option(["--gates"]), everything)
