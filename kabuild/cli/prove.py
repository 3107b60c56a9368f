"""``kabuild import --prove``: whether imported tasks mean what their originals do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from kabuild.base.errors import NoTestsError, Reason
from kabuild.base.listing import counted
from kabuild.cli.session import builder
from kabuild.loading import Loader, expand, find_workspace, load_workspace
from kabuild.loading.request import Request
from kabuild.model.gate import Pick
from kabuild.model.gate_result import GateResult
from kabuild.model.label import Label, repository_of, show_package
from kabuild.report.ladder import Ladder

_PROOF = "proof"
_CHECK = "check"


@dataclass(frozen=True)
class _Provable:
    """The tasks of patterns.

    Attributes:
        gates: the labels of the proofs.
        without: tasks whose original has no check that an adapter knows.
    """

    gates: tuple[Label, ...]
    without: tuple[Label, ...]


def prove(names: Sequence[str], request: Request) -> int:
    """Run and print the proofs of all tasks of patterns; returns the exit code."""
    loader = Loader(load_workspace(find_workspace(Path.cwd())))
    patterns = tuple(name if "//" in name else f"{name}//..." for name in names)
    tasks = _provable(loader, expand(loader, patterns))
    if not tasks.gates:
        what = f"no original check is known for {', '.join(names)}"
        hint = "the adapter knows none, or the checkout lacks its file (docs/importing.md)"
        raise NoTestsError(Reason.NO_TESTS, what, hint=hint)
    request = replace(
        request, patterns=tuple(map(str, tasks.gates)), pick=Pick.VALIDATE, keep_going=True
    )
    with builder() as builds:
        summary = builds.run(request)
    found = [r.gates[_PROOF] for r in summary.table if _PROOF in r.gates]
    click.echo(_text(found, len(tasks.without)))
    return int(summary.exit_code)


def _provable(loader: Loader, tasks: Sequence[Label]) -> _Provable:
    """Tells the tasks that can be proved from the others; all are of external repositories."""
    known, without = [], []
    for label in tasks:
        repository, _, name = label.package.partition("/")
        task = loader.external.lock(repository_of(repository)).task(name)
        if task.attrs.get(_CHECK):
            known.append(label.sub(_PROOF))
        else:
            without.append(label)
    return _Provable(tuple(known), tuple(without))


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
        lines.append(f"checks with findings: {fooled}; see kabuild report --format=audit")
    if without:
        lines.append(
            f"not proved: {counted(without, 'task')} without an original check that the adapter "
            "knows"
        )
    return "\n".join(lines).lstrip("\n")
