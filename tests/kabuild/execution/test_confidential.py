"""Which actions know a salt, and so stay on the machine."""

from __future__ import annotations

import json

from kabuild.execution.confidential import knowing
from kabuild.model.action import Literal
from kabuild.model.graph import ActionGraph
from tests.testkit.actions import command, gate

SALT = 'a "salt" of \u00fcmlauts'


def test_who_is_told_and_who_reads_it() -> None:
    compiled = command("compile", outputs=("bin",))
    inputs = {"spec.json": Literal(f'{{"salt": "{SALT}"}}'.encode())}
    told = gate("unseen", inputs=inputs)
    escaped = command("escaped", inputs={"spec.json": Literal(json.dumps({"salt": SALT}).encode())})
    reads = command("score", inputs={"verdict.json": told.output("verdict.json")})
    then = command("table", inputs={"score": reads.output("result")})
    beside = command("perf", inputs={"bin": compiled.output("bin")})
    by_argument = command("argument", "run", f"--salt={SALT}")
    by_variable = command("variable", env={"SALT": SALT})
    graph = ActionGraph.of([compiled, told, escaped, reads, then, beside, by_argument, by_variable])

    found = knowing(graph, SALT)

    names = {label.partition(":")[2] for label in found}
    assert names == {"unseen", "escaped", "score", "table", "argument", "variable"}
