"""The page of a report: what it shows, to whom, and what it never runs."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest

from kabuild.model.label import Label
from kabuild.model.task_result import Evidence, TaskResult
from kabuild.report.evaluation import Evaluation
from kabuild.report.exports import render_csv, render_json, render_markdown
from kabuild.report.leaderboard import leaderboard
from kabuild.report.page.render import render_page
from kabuild.report.times import nanoseconds
from tests.testkit.browser import browse, needs_browser
from tests.testkit.evaluations import GATES, saying

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = (
    "</pre><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
)


def case(config: str, speedup: float, **more: Any) -> dict[str, Any]:
    """One timed config."""
    times = {"baseline_ns": 1e6 * speedup, "candidate_ns": 1e6}
    ends = {"low": speedup * 0.9, "high": speedup * 1.1}
    return {"config": config, "speedup": speedup, **times, **ends, **more}


def result(name: str, speedup: float | None, family: str = "hip2hip", **more: Any) -> TaskResult:
    """A task that passed with a speedup, or failed its correctness gate."""
    good = {"verdict": "PASS", "reason": "", "summary": "fine", "detail": ""}
    bad = {"verdict": "FAIL", "reason": "WRONG_RESULT", "summary": "wrong", "detail": HOSTILE}
    gates: dict[str, Any] = {"compile": good, "correctness": bad if speedup is None else good}
    if speedup is not None:
        gates["perf"] = {**good, "cases": [case("f32 n=4096", speedup, bytes=4096, flops=8192)]}
    score = {"speedup": speedup} if speedup else {}
    label = Label(f"tasks/{family}/{name}", name)
    return saying(TaskResult(label, {}, score, **more), gates)


def evaluation(name: str, *results: TaskResult, **more: Any) -> Evaluation:
    """An evaluation on the cpu."""
    asked = {"policy": "aka"}
    return Evaluation(name, "0.1", {"name": "cpu"}, asked, results, gates=GATES.all, **more)


TALK = Evidence(transcript=({"role": "tool", "text": HOSTILE},))
PAIR = (
    evaluation(
        "ours",
        result("softmax", 4.0, evidence=Evidence(HOSTILE, "int x;")),
        result("gemm", None, evidence=Evidence("int y;")),
        result("rope", 0.5, family="torch2hip"),
        result("topk", 1.0, family="torch2hip", evidence=TALK),
    ),
    evaluation("theirs", result("softmax", 2.0), doubt="its judge ran in the same process"),
)


def test_a_failed_task_stays_in_every_figure() -> None:
    whole, hip, torch, theirs = leaderboard(PAIR)
    assert (whole.family, whole.tasks, whole.shares["correct"]) == ("all", 4, 0.75)
    assert whole.geomean == pytest.approx((4.0 * 1.0 * 0.5 * 1.0) ** 0.25)
    assert hip.median == 2.5
    assert hip.fast[1.0] == 0.5
    assert torch.fast[0.8] == 0.5
    assert theirs.shares["unseen"] is None
    assert theirs.geomean == pytest.approx(2.0)


def test_an_agent_may_say_anything_and_any_number_of_times() -> None:
    entries: tuple[dict[str, Any], ...] = (
        {"role": 1, "text": [HOSTILE]},
        {"text": 5},
        {},
        *({"text": "x"},) * 9000,
    )
    talk = evaluation("a", result("softmax", 2.0, evidence=Evidence(transcript=entries)))
    page = render_page([talk], title="t")
    assert "transcript, 9003 entries" in page
    assert page.count("<pre>x</pre>") == 1997
    assert "<script>document" not in page


def test_kernels_of_any_length_are_compared_soon() -> None:
    """A worst case of the comparison: 100,000 lines took minutes, and a bundle may hold more."""
    kernels = ("\n".join(str(i * 7 % 105) for i in range(9000)), "\n".join(["7"] * 100_000))
    one = evaluation("a", result("softmax", 2.0, evidence=Evidence(*kernels)))
    page = render_page([one], title="t")
    assert "[only the first 3000 lines of each are compared]" in page


def test_each_row_says_what_it_was_measured_on() -> None:
    on = {"name": "cuda", "arch": "sm_90", "device": "NVIDIA H200"}
    both = (PAIR[0], replace(PAIR[1], platform=on))

    assert [row.machine for row in leaderboard(both)][-2:] == ["cpu", "cuda: NVIDIA H200"]
    assert "| theirs | cuda: NVIDIA H200 | hip2hip | 1 |" in render_markdown(both)
    assert '<td class="name">cuda: NVIDIA H200</td>' in render_page(both, title="t")


def test_without_a_device_a_platform_says_its_architecture() -> None:
    on = {"name": "rocm", "arch": "gfx942"}
    assert replace(PAIR[0], platform=on).machine == "rocm:gfx942"


def test_data_has_a_schema_and_can_be_read() -> None:
    document = json.loads(render_json(PAIR))
    assert document["schema"] == "kabuild/report/2"
    assert [item["name"] for item in document["evaluations"]] == ["ours", "theirs"]
    assert document["evaluations"][0]["results"][1]["speedup"] is None
    assert document["standings"][0]["fast"]["1"] == 0.25

    rows = list(csv.DictReader(io.StringIO(render_csv(PAIR))))
    assert [row["task"] for row in rows][:2] == ["//tasks/hip2hip/softmax", "//tasks/hip2hip/gemm"]
    assert (rows[1]["correctness"], rows[1]["reason"]) == ("FAIL", "WRONG_RESULT")


def test_markdown_is_a_table_whatever_names_hold() -> None:
    odd = evaluation("a|b\nc", result("softmax", 2.0))
    text = render_markdown([odd])
    assert "| a\\|b c | cpu | hip2hip | 1 |" in text
    assert "| //tasks/hip2hip/softmax | 2.00x ±11 % |" in text
    assert "theirs: its judge ran in the same process" in render_markdown(PAIR)


class Elements(HTMLParser):
    """Counts what a page has."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.outside: list[str] = []
        self.handlers: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in {"src", "href", "srcset", "action"} and not (value or "").startswith("#"):
                self.outside.append(f"{tag} {name}={value}")
            if name.startswith("on"):
                self.handlers.append(name)


def test_what_kernels_and_agents_write_is_text() -> None:
    page = Elements(render_page(PAIR, title="<b>title</b>"))
    assert page.tags.count("script") == 1
    assert "img" not in page.tags
    assert not page.handlers


def test_the_page_needs_no_network() -> None:
    assert not Elements(render_page(PAIR, title="t")).outside


def test_a_task_has_a_history_where_an_agent_solved_it_again() -> None:
    again = [replace(item, request={"agent": "//agents:ours"}) for item in PAIR]
    assert "speedups of //tasks/hip2hip/softmax on cpu" in render_page(again, title="t")
    other = [PAIR[0], replace(PAIR[1], request={"agent": "//agents:theirs"})]
    assert "speedups of //tasks" not in render_page(other, title="t")
    elsewhere = [again[0], replace(again[1], platform={"name": "cuda", "arch": "sm_90"})]
    assert "speedups of //tasks" not in render_page(elsewhere, title="t")


def test_equal_evaluations_are_equal_pages() -> None:
    assert render_page(PAIR, title="t") == render_page(PAIR, title="t")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (12.0, "12 ns"), (1500.0, "1.5 µs"), (2.5e6, "2.5 ms"), (3e9, "3 s")],
)
def test_times_have_a_unit_that_fits(value: float | None, text: str) -> None:
    assert nanoseconds(value) == text


@needs_browser
def test_a_browser_shows_it_and_runs_nothing_but_ours(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(render_page(PAIR, title="An evaluation"))
    shown = browse(page)
    assert "<title>An evaluation</title>" in shown
    assert "<th><button>evaluation</button></th>" in shown  # our script ran
    assert shown.count("<svg") >= 4
    assert "its judge ran in the same process" in shown


@needs_browser
def test_a_script_that_got_in_all_the_same_is_refused(tmp_path: Path) -> None:
    """The policy of the page is a second line: it holds even where escaping would fail."""
    page = tmp_path / "report.html"
    text = render_page(PAIR, title="An evaluation")
    page.write_text(text.replace("</main>", "<script>document.title='owned'</script></main>"))
    with pytest.raises(AssertionError, match="Content Security Policy"):
        browse(page)


@needs_browser
def test_a_link_to_a_task_opens_it(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    text = render_page(PAIR, title="t")
    page.write_text(text.replace('href="#tasks-hip2hip-softmax"', 'href="#x"'))
    shown = browse(page)
    assert 'id="tasks-hip2hip-softmax"' in shown
    assert '<details class="result" open' not in shown
