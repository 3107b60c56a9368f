"""``out/test.xml``: JUnit XML, one suite per task and one case per gate."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, tostring

from kabuild.model.verdict import Verdict
from kabuild.report.scoreboard import GateCell, TaskRow

_KINDS = {Verdict.SKIPPED: "skipped", Verdict.FAIL: "failure", Verdict.REJECTED: "failure"}
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(table: Sequence[TaskRow]) -> bytes:
    """The document. FAIL and REJECTED are failures, what was not judged is an error."""
    root = Element("testsuites", name="kabuild")
    for row in table:
        suite = SubElement(root, "testsuite", name=str(row.label))
        for cell in row.cells:
            _add_case(suite, row, cell)
        for count, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            suite.set(count, str(len(suite.findall(f"*/{kind}"))))
        suite.set("tests", str(len(row.cells)))
        suite.set("time", f"{sum(cell.settled.seconds for cell in row.cells):.3f}")
    document: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return document


def _add_case(suite: Element, row: TaskRow, cell: GateCell) -> None:
    case = SubElement(
        suite,
        "testcase",
        name=cell.gate,
        classname=str(row.label),
        time=f"{cell.settled.seconds:.3f}",
    )
    if cell.verdict is Verdict.PASS:
        return
    kind = _KINDS[cell.verdict] if cell.verdict else "error"
    problem = SubElement(
        case, kind, message=_legal(cell.summary), type=_legal(cell.reason or cell.word)
    )
    problem.text = _legal(cell.detail)


def _legal(text: str) -> str:
    """Without the control characters that XML 1.0 forbids; candidates may print any."""
    return _FORBIDDEN.sub("\ufffd", text)
