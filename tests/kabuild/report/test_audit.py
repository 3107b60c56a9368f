"""The page about benchmarks and their own checks."""

from __future__ import annotations

from kabuild.model.gate import Gate
from kabuild.model.gate_result import GateResult
from kabuild.model.label import Label
from kabuild.report.audit import AuditedBenchmark, AuditedTask, render_audit

ADMISSION = Gate("admission")


def _task(name: str, word: str, reason: str = "") -> AuditedTask:
    label = Label(f"@bench/{name}", name)
    return AuditedTask(
        f"@bench//{name}", name, gates={"admission": GateResult(label, ADMISSION, word, reason)}
    )


def test_gates_that_did_not_end_are_no_verdicts() -> None:
    tasks = (
        _task("a", "PASS"),
        _task("b", "REJECTED", "TOO_TOLERANT"),
        _task("c", "CANCELLED"),
        _task("d", "INFRA", "NO_SPACE"),
    )
    page = render_audit([AuditedBenchmark("bench", "", tasks, ("@bench//...",))], "cpu", 4)

    assert "| judged by `admission` | 2 |" in page
    assert "| not judged by `admission`, which did not end | 2 |" in page
    assert "| passed `admission` | 1 |" in page
    assert "| `admission`: `TOO_TOLERANT` | 1 |" in page
    assert "``" not in page.replace("```", "")
    assert "NO_SPACE" not in page
