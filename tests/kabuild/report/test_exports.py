"""What a bundle says of itself acts neither in Markdown nor in a spreadsheet."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from kabuild.report.exports import render_csv, render_markdown
from tests.kabuild.report.test_page import evaluation, result
from tests.testkit.evaluations import saying


def shown(name: str, reason: str = "WRONG_RESULT") -> tuple[str, dict[str, str]]:
    """An evaluation of that name in Markdown, and its first line as CSV."""
    fails = {"verdict": "FAIL", "reason": reason, "summary": "", "detail": ""}
    one = replace(evaluation("a", saying(result("gemm", None), {"compile": fails})), name=name)
    (row,) = csv.DictReader(io.StringIO(render_csv([one])))
    return render_markdown([one]), row


@pytest.mark.parametrize(
    "text",
    [
        "<img src=x onerror=alert(1)>",
        "[safe](javascript:alert(1))",
        "a | b",
        "\\| b",
        "`code",
        "\x1b]0;title\x07",
        "\u202edesrever",
        "a\n\n# heading",
        "a\r# heading",
    ],
)
def test_names_and_reasons_are_no_markup(text: str) -> None:
    plain, _ = shown("name")
    for said in (shown(text)[0], shown("name", text)[0]):
        assert not set("<`\x1b\x07\u202e\r") & set(said.replace("\\`", ""))
        bare = said.replace("\\\\", "").replace("\\|", "").replace("\\]", "")
        assert "](" not in bare
        assert not [line for line in said.splitlines() if line.startswith("#")]
        columns = [line.count("|") for line in bare.split("\n")]
        assert columns == [line.count("|") for line in plain.split("\n")]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "=HYPERLINK(1)"])
def test_no_cell_is_a_formula(text: str) -> None:
    for row in (shown(text)[1], shown("name", text)[1]):
        assert not [cell for cell in row.values() if cell.lstrip().startswith(tuple("=+-@"))]


def test_honest_names_stay_as_they_are() -> None:
    text, row = shown("gpt-5 (medium) on NVIDIA H200", "WRONG_RESULT")
    assert "gpt-5 (medium) on NVIDIA H200" in text
    assert "WRONG_RESULT" in text
    assert (row["evaluation"], row["reason"]) == ("gpt-5 (medium) on NVIDIA H200", "WRONG_RESULT")
