"""A family's gates are what its rule declares: a toy family, whose gates kabuild never heard of."""

from __future__ import annotations

import ast
import csv
import io
from pathlib import Path

import pytest

from tests.testkit.cli import REPOSITORY, CliWorkspace

RULE = """\
from kabuild.rule import Context, Gate, Role, Rule, When, attr

GATES = (
    Gate("make", share="made", watched=True),
    Gate("race", role=Role.TIMES),
    Gate("points", role=Role.SCORE),
)
CASE = {"config": "n=1", "speedup": 3.0, "low": 2.9, "high": 3.1}
SPEEDUP = {"speedup": 3.0, "speedup_low": 2.9, "speedup_high": 3.1}
SAID = {
    "race": {"mean_speedup": 3.0, "cases": [CASE]},
    "points": {**SPEEDUP, "score": 42.0},
}


def implement(ctx: Context) -> None:
    done = ()
    for gate in GATES:
        said = {"schema": 1, "gate": gate.name, "summary": "", "detail": "",
                **SAID.get(gate.name, {})}
        more = ("score.json",) if gate.role is Role.SCORE else ()
        usual = gate.when is When.USUAL
        made = ctx.gate(
            gate.name,
            argv=("/bin/sh", "-c", f"v=pass; grep -q no-{gate.name} candidate/kernel && v=fail; "
                  "cp $v out/verdict.json" + "; cp $v out/score.json" * len(more)),
            inputs={
                "candidate/kernel": ctx.attrs["kernel"],
                "pass": ctx.literal({**said, "verdict": "PASS", "reason": ""}),
                "fail": ctx.literal({**said, "verdict": "FAIL", "reason": "NO_TOY"}),
            },
            outputs=more,
            mnemonic=gate.name.capitalize(),
            requires=done if usual else (),
        )
        done = (*done, made) if usual else done


RULE = Rule(kind="toys", doc="Plays.", implement=implement, gates=GATES,
            attrs={"kernel": attr.file("What is judged.")})
"""
TOY = '    Gate("toy", When.ON_REQUEST, share="toyed"),\n'


@pytest.fixture
def workspace(workspace: CliWorkspace) -> CliWorkspace:
    workspace.write("rules/toys/rule.py", RULE)
    workspace.write("t/BUILD.toml", '[[toys]]\nname = "t"\nkernel = "kernel"\n')
    workspace.write("t/kernel", "a kernel\n")
    return workspace


@pytest.fixture
def toyed(workspace: CliWorkspace) -> CliWorkspace:
    """The family with one gate more: a line of its rule, and no other file."""
    last = '    Gate("points", role=Role.SCORE),\n'
    workspace.write("rules/toys/rule.py", RULE.replace(last, last + TOY))
    return workspace


def test_columns_figures_and_order_follow_the_rule(workspace: CliWorkspace) -> None:
    ran = workspace.run("test", "//t")

    head, row, *_ = ran.out.splitlines()
    assert head.split() == ["task", "make", "race", "speedup", "score"]
    assert row.split() == ["//t", "PASS", "PASS", "3.00x", "±3", "%", "42.0"]
    again = workspace.run("test", "//t")
    assert again.out.splitlines()[:2] == [head, f"{row.rstrip()}   cached"]
    assert not again.err, "it is remembered, so that nothing is loaded"


def test_a_new_gate_is_a_line_of_its_rule(toyed: CliWorkspace) -> None:
    toyed.write("t/kernel", "no-toy\n")

    usual = toyed.run("test", "//t", "--json")
    assert (usual.code, [item["gate"] for item in usual.json["targets"]]) == (
        0,
        ["make", "race", "points"],
    )
    asked = toyed.run("test", "//t", "--gates=+toy", "--json")
    assert asked.code == 3
    assert [item["gate"] for item in asked.json["targets"]] == ["make", "race", "points", "toy"]
    assert asked.gate("toy")["reason"] == "NO_TOY"
    assert asked.executed == {"//t:t.toy"}
    assert asked.gate("points")["speedup"] == 3.0, "no figure depends on it"
    assert "//t:t.toy: FAIL (NO_TOY)" in toyed.run("test", "//t:t.toy").out
    head = toyed.run("test", "//t", "--gates=toy,make").out.splitlines()
    assert next(line for line in head if line.startswith("task")).split() == ["task", "make", "toy"]


@pytest.mark.parametrize(
    ("gates", "said"),
    [
        ("+toi", "unknown gate 'toi'\n  did you mean 'toy'?"),
        ("wheel", "unknown gate 'wheel'\n  gates: make, race, points, toy"),
        ("-make,-race,-points", "--gates=-make,-points,-race selects no gate"),
        ("make,+sanitize", "mixes gates with changes to the usual ones"),
        ("+sanitize", "sanitize is not available on cpu for //t"),
    ],
)
def test_what_is_no_gate_of_it_says_what_there_is(
    toyed: CliWorkspace, gates: str, said: str
) -> None:
    ran = toyed.run("test", "//t", f"--gates={gates}")

    assert (ran.code, said in ran.err) == (2, True), ran.err


def test_a_rule_declares_its_policies(workspace: CliWorkspace) -> None:
    declared = RULE.replace("role=Role.SCORE)", 'role=Role.SCORE, policies=("fair",))')
    workspace.write("rules/toys/rule.py", declared)

    ran = [workspace.run("test", "//t", *flags) for flags in ((), ("--policy=fair",))]
    refused = workspace.run("test", "//t", "--policy=fare")
    other = workspace.run("test", "//t", "--policy=geomean")

    assert [one.code for one in ran] == [0, 0]
    hint = "  did you mean 'fair'?\n"
    assert (refused.code, refused.err) == (2, f"error: unknown scoring policy 'fare'\n{hint}")
    assert (other.code, other.err) == (
        2,
        "error: unknown scoring policy 'geomean'\n  policies: fair\n",
    )


def test_reports_show_it(toyed: CliWorkspace) -> None:
    table = toyed.run("report", "//t", "--gates=+toy", "--format=md").out
    assert "| tasks | trials | made | toyed | geomean |" in table
    assert "| 1 | 1 | 100 % | 100 % | 3.00x ±3 % |" in table
    (row,) = csv.DictReader(io.StringIO(toyed.run("report", "//t", "--format=csv").out))
    assert (row["make"], row["race"], row["speedup"]) == ("PASS", "PASS", "3.0")
    assert "toy" not in row, "one on request is in no column that every result has"
    (standing,) = toyed.run("report", "//t", "--format=json").json["standings"]
    assert (standing["made"], standing["toyed"]) == (1.0, None)
    page = toyed.root / "page.html"
    assert toyed.run("report", "//t", "--gates=+toy", "-o", str(page)).code == 0
    assert '<th class="number">toyed</th>' in page.read_text()


def test_bundles_hold_it(toyed: CliWorkspace, tmp_path: Path) -> None:
    bundle = str(toyed.root / "toys.kab")
    assert toyed.run("publish", "//t", "--gates=+toy", "-o", bundle).code == 0

    here = toyed.run("verify", bundle)
    assert "\n  toy     1 PASS\n" in here.out
    assert "requested gates: make, race, points, toy\n" in here.out
    assert "left out" not in here.out
    assert "| made | toyed |" in toyed.run("report", bundle, "--format=md").out
    ran = toyed.run("replay", bundle, "--gates=toy")
    assert (ran.code, ran.out.splitlines()[0]) == (0, "//t:t.toy: reproduced: byte for byte")
    (tmp_path / "elsewhere").mkdir()
    elsewhere = CliWorkspace.make(tmp_path / "elsewhere")
    (result,) = elsewhere.run("report", bundle, "--format=json").json["evaluations"][0]["results"]
    assert list(result["gates"]) == ["make", "race", "points", "toy"]
    part = str(toyed.root / "part.kab")
    assert toyed.run("publish", "//t", "--gates=make", "-o", part).code == 0
    left = "gates left out: race, points of //t\n"
    assert left in toyed.run("verify", part).out


NAMES = {"compile", "correctness", "perf", "unseen", "retention", "sanitize", "admission"}


def named_gates(root: Path) -> list[str]:
    """Where a module names a gate of the rules that ship."""
    return [
        f"{file.relative_to(root)}:{node.lineno}: {node.value}"
        for file in sorted(root.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and node.value in NAMES
    ]


def test_no_code_of_kabuild_names_a_gate() -> None:
    found = named_gates(REPOSITORY / "kabuild")

    # AgentKernelArena's results, which are read and written, have gates of their own.
    assert {place.partition(":")[0] for place in found} == {"report/arena.py"}


def test_the_search_for_gates_finds_one(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text('"""Judges perf."""\nx = ("perf",)\n')

    assert named_gates(tmp_path) == ["x.py:2: perf"]
