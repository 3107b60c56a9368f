"""``--gates``: which gates are meant, by name or as changes of the usual ones."""

from __future__ import annotations

import click
import pytest

from kabuild.base.errors import UsageError
from kabuild.cli.flags import read_gates
from kabuild.model.gate import Gate, Pick, Role, When, choose, merged

DECLARED = (
    Gate("compile", watched=True),
    Gate("correctness", watched=True),
    Gate("perf", role=Role.TIMES, watched=True),
    Gate("unseen"),
    Gate("score", role=Role.SCORE),
    Gate("retention", When.ON_REQUEST),
    Gate("admission", When.VALIDATE),
    Gate("sanitize", When.ON_REQUEST),
)
USUAL = ("compile", "correctness", "perf", "unseen", "score")


def chosen(text: str, pick: Pick = Pick.USUAL) -> tuple[str, ...]:
    words = read_gates(click.Context(click.Command("test")), click.Option(["--gates"]), text)
    return choose(words, pick, DECLARED)


@pytest.mark.parametrize(
    ("text", "gates"),
    [
        ("", USUAL),
        ("unseen,compile", ("compile", "unseen")),
        ("sanitize", ("sanitize",)),
        ("+sanitize", (*USUAL, "sanitize")),
        ("-perf,-unseen", ("compile", "correctness", "score")),
        ("-perf, +sanitize", ("compile", "correctness", "unseen", "score", "sanitize")),
        ("+sanitize,+retention,-perf", (*USUAL[:2], *USUAL[3:], "retention", "sanitize")),
        ("+sanitize,-sanitize", USUAL),
    ],
)
def test_gates_are_named_or_changed(text: str, gates: tuple[str, ...]) -> None:
    """``+`` and ``-`` change the usual ones; the order is that of judging."""
    assert chosen(text) == gates


@pytest.mark.parametrize(
    ("pick", "text", "gates"),
    [
        (Pick.WATCHED, "", ("compile", "correctness", "perf")),
        (Pick.WATCHED, "-perf", ("compile", "correctness")),
        (Pick.TIMED, "", ("perf",)),
        (Pick.VALIDATE, "", ("admission",)),
    ],
)
def test_each_command_has_its_own_usual_ones(pick: Pick, text: str, gates: tuple[str, ...]) -> None:
    assert chosen(text, pick) == gates


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (",".join(f"-{gate}" for gate in USUAL), "selects no gate"),
        ("compile,-perf", "mixes gates with changes to the usual ones"),
        ("perv", "unknown gate 'perv'"),
        ("+sanitise", "unknown gate 'sanitise'"),
        ("admission", "unknown gate 'admission'"),
        ("+", "unknown gate ''"),
    ],
)
def test_what_means_no_gates_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        chosen(text)


def test_gates_of_several_rules_keep_the_order_of_each() -> None:
    toy = (Gate("compile"), Gate("toy"), Gate("score"), Gate("extra"))
    order = [gate.name for gate in merged([DECLARED, toy])]

    assert [name for name in order if name in {"compile", "toy", "score", "extra"}] == [
        *("compile", "toy", "score", "extra")
    ]
    assert [name for name in order if name not in {"toy", "extra"}] == [g.name for g in DECLARED]
