"""``kabuild import --prove``: whether imported tasks mean what their originals do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from kabuild.base.errors import NoTestsError, Reason
from kabuild.cli.session import builder
from kabuild.imports.prove import PROOF, provable
from kabuild.loading import Loader, expand, find_workspace, load_workspace
from kabuild.loading.request import Request
from kabuild.model.gate import Pick
from kabuild.model.gate_result import GateResult
from kabuild.model.label import show_package
from kabuild.report.ladder import Ladder


def prove(names: Sequence[str], request: Request) -> int:
    """Run and print the proofs of all tasks of patterns; returns the exit code."""
    loader = Loader(load_workspace(find_workspace(Path.cwd())))
    patterns = tuple(name if "//" in name else f"{name}//..." for name in names)
    tasks = provable(loader, expand(loader, patterns))
    if not tasks.gates:
        what = f"no original check is known for {', '.join(names)}"
        raise NoTestsError(Reason.NO_TESTS, what)
    request = replace(
        request, patterns=tuple(map(str, tasks.gates)), pick=Pick.VALIDATE, keep_going=True
    )
    with builder() as builds:
        summary = builds.run(request)
    found = [r.gates[PROOF] for r in summary.table if PROOF in r.gates]
    click.echo(_text(found, len(tasks.without)))
    return int(summary.exit_code)


def _text(gates: Sequence[GateResult], without: int) -> str:
    lines = [
        f"{show_package(gate.label.package)}  {gate.title}\n  {gate.summary}"
        for gate in gates
        if not gate.passed
    ]
    passed, fooled = sum(gate.passed for gate in gates), sum(bool(g.findings) for g in gates)
    lines += ["", Ladder.of(gates).text(), ""]
    lines.append(f"{passed} of {len(gates)} tasks mean what their originals do")
    if fooled:
        lines.append(f"{fooled} originals have checks with findings: kabuild report --format=audit")
    if without:
        lines.append(
            f"not proved: {without} tasks without an original check that the adapter knows"
        )
    return "\n".join(lines).lstrip("\n")
