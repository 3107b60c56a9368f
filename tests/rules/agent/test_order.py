"""What a session is told, and the placeholders of a definition."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from order import fill, read_order

DEFINITION: dict[str, Any] = {
    "command": ["${toolchain:cli}/bin/x", "{prompt}"],
    "service": [],
    "version_command": [],
    "secrets": [],
    "hosts": [],
    "prompt_by": "argument",
    "model": "m",
    "network": "none",
    "seconds": 1.0,
    "turns": 0,
    "tokens": 0,
    "dollars": 0.0,
    "version": "",
    "adapter": "plain",
    "env": {},
    "cli": "${toolchain:cli}",
}
ORDER: dict[str, Any] = {
    "schema": 1,
    "name": "mine",
    "agent": DEFINITION,
    "kernel": "k.hip",
    "trial": 2,
    "run": 3,
    "memory": 1 << 30,
    "check": {"compile": ["${toolchain:zig}"], "artifact": "kernel.so", "specs": {}},
}


def test_tokens_become_paths(tmp_path: Path) -> None:
    (tmp_path / "agent.json").write_text(json.dumps(ORDER))

    order = read_order(tmp_path / "agent.json", ['cli=/opt/a "quoted" one', "zig=/opt/zig"])

    assert order.agent.cli == '/opt/a "quoted" one'
    assert order.agent.command[0] == '/opt/a "quoted" one/bin/x'
    assert order.check.compile == ["/opt/zig"]


def test_counting_is_there_where_the_platform_counts(tmp_path: Path) -> None:
    counting = {"compile": ["c"], "outputs": ["k.places.json"], "spec": {"gate": "analyze"}}
    ranking = {**counting, "ranks": "sm_90"}
    for told, expected in (
        (None, None),
        (counting, {**counting, "ranks": ""}),
        (ranking, ranking),
    ):
        order = {**ORDER, "check": {**ORDER["check"], "counting": told}}
        (tmp_path / "agent.json").write_text(json.dumps(order))
        found = read_order(tmp_path / "agent.json", []).check.counting
        assert (found and dict(vars(found))) == expected


def test_trials_and_runs_have_different_seeds(tmp_path: Path) -> None:
    seeds = set()
    for trial, run in ((1, 0), (2, 0), (1, 1), (2, 1)):
        (tmp_path / "agent.json").write_text(json.dumps({**ORDER, "trial": trial, "run": run}))
        seeds.add(read_order(tmp_path / "agent.json", []).seed)

    assert len(seeds) == 4


def test_an_order_of_another_schema_is_refused(tmp_path: Path) -> None:
    (tmp_path / "agent.json").write_text(json.dumps({**ORDER, "schema": 2}))

    with pytest.raises(ValueError, match="schema 1"):
        read_order(tmp_path / "agent.json", [])


def test_only_known_placeholders_are_filled_and_once() -> None:
    known = {"prompt": "{model} {x}", "model": "m"}

    assert fill("{prompt}|{model}|{unknown}|{}|{{model}}", known) == (
        "{model} {x}|m|{unknown}|{}|{m}"
    )
