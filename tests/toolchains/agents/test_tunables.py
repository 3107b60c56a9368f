"""Tunables are found in kernels, and set."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tunables import TunableError, apply, describe, find

ROOT = Path(__file__).parents[3]

HIP = """\
// kabuild:tune kThreads = 128, 256
constexpr int kThreads = 256;  // kThreads = 1
// kabuild:tune UNROLL = 1, 2
  #  define UNROLL 1
"""
TRITON = """\
def entry(x):
    # kabuild:tune BLOCK = 64, 128
    # kabuild:tune num_warps = 4, 8
    kernel[(1,)](
        x,
        BLOCK=64, num_warps=4)
    # kabuild:tune BLOCK = 1, 2
    BLOCK: tl.constexpr = 2
"""


def test_a_definition_and_an_assignment_are_found() -> None:
    threads, unroll = find(HIP)

    assert (threads.name, threads.values, threads.default) == ("kThreads", ("128", "256"), "256")
    assert (unroll.name, unroll.values, unroll.default) == ("UNROLL", ("1", "2"), "1")


def test_other_values_change_their_places_only() -> None:
    threads, unroll = find(HIP)

    changed = apply(HIP, {threads: "128", unroll: "2"})

    assert changed == HIP.replace("kThreads = 256;", "kThreads = 128;").replace(
        "UNROLL 1", "UNROLL 2"
    )


def test_keywords_of_a_launch_are_found_wherever_it_breaks_and_each_place_is_its_own() -> None:
    block, warps, second = find(TRITON)

    changed = apply(TRITON, {block: "128", warps: "8", second: "1"})

    assert "BLOCK=128, num_warps=8)" in changed
    assert "BLOCK: tl.constexpr = 1" in changed
    assert describe({block: "128", warps: "8"}) == "BLOCK=128 num_warps=8"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("// kabuild:tune kX = 1, 2\nint y;\n", "line 1: no line below sets 'kX'"),
        ("\n// kabuild:tune kX = 1, 2", "line 2: no line below sets 'kX'"),
        ("// kabuild:tune kX\nint kX = 1;", "line 1: write"),
        ("// kabuild:tune kX = 1, ; rm\nint kX = 1;", "line 1: write"),
        ("# kabuild:tune X = 1, 1\nX = 1", "listed twice"),
    ],
)
def test_a_wrong_declaration_names_its_line(text: str, why: str) -> None:
    with pytest.raises(TunableError, match=why):
        find(text)


@given(st.text())
def test_a_text_without_declarations_has_none(text: str) -> None:
    assert find(text.replace("kabuild:tune", "")) == ()


def test_the_tasks_of_this_repository_declare_tunables_that_read_back() -> None:
    found = {}
    for path in (*ROOT.glob("tasks/*/*/*.hip"), *ROOT.glob("tasks/triton2triton/*/*.py")):
        text = path.read_text()
        tunables = find(text)
        assert apply(text, {tunable: tunable.default for tunable in tunables}) == text
        assert all(tunable.default in tunable.values for tunable in tunables)
        if tunables:
            found[path.parent.name] = tunables

    assert len(found) >= 4
