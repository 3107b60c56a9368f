"""``out/test.xml``: JUnit XML, one suite per task and one case per gate."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, tostring

from kabuild.base.printing import escaped
from kabuild.model.gate_result import GateResult
from kabuild.model.task_result import TaskResult
from kabuild.model.verdict import Verdict

_KINDS = {Verdict.SKIPPED: "skipped", Verdict.FAIL: "failure", Verdict.REJECTED: "failure"}
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(table: Sequence[TaskResult]) -> bytes:
    """The document. FAIL and REJECTED are failures; unjudged gates are errors."""
    root = Element("testsuites", name="kabuild")
    for one in table:
        suite = SubElement(root, "testsuite", name=str(one.label))
        for gate in one.gates.values():
            _add_case(suite, one, gate)
        for count, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            suite.set(count, str(len(suite.findall(f"*/{kind}"))))
        suite.set("tests", str(len(one.gates)))
        suite.set("time", f"{sum(gate.seconds for gate in one.gates.values()):.3f}")
    document: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return document


def _add_case(suite: Element, one: TaskResult, gate: GateResult) -> None:
    case = SubElement(
        suite,
        "testcase",
        name=gate.gate,
        classname=str(one.label),
        time=f"{gate.seconds:.3f}",
    )
    if gate.passed:
        return
    kind = _KINDS[gate.verdict] if gate.verdict else "error"
    problem = SubElement(
        case, kind, message=_legal(gate.headline), type=_legal(gate.reason or gate.word)
    )
    problem.text = _legal(gate.detail)


def _legal(text: str) -> str:
    """Text without characters that XML 1.0 forbids or that act on displays."""
    return _FORBIDDEN.sub("\ufffd", escaped(text))
