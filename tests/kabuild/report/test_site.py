"""The site: what its pages show, where they lie, and what they never run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from kabuild.base.errors import BundleError, UsageError
from kabuild.model.gate_result import GateResult
from kabuild.model.task_result import Evidence, TaskResult
from kabuild.report.evaluation import Evaluation
from kabuild.report.replays import Replay, read_replay
from kabuild.report.site.addresses import agent_page, slug, task_page
from kabuild.report.site.directory import check_directory, write_site
from kabuild.report.site.listed import Listed, listed_once
from kabuild.report.site.pages import Pages
from tests.kabuild.report.test_page import HOSTILE, Elements, evaluation, result
from tests.testkit.browser import browse, needs_browser
from tests.testkit.evaluations import in_trial
from tests.testkit.links import followed_links

H200 = {"name": "cuda", "arch": "sm_90", "device": "NVIDIA H200"}


def judged_by(agent: str, *results: Any, device: str = "", **more: Any) -> Evaluation:
    """An evaluation of an agent, with a digest of its own."""
    platform = {**H200, "device": device or H200["device"]}
    made = evaluation(agent, *results)
    digest = sha256(repr((agent, device, results)).encode()).hexdigest()
    request = {**made.request, "agent": f"//agents:{agent}"}
    return replace(made, platform=platform, request=request, digest=digest, **more)


def listed(one: Evaluation, file: Path, **more: Any) -> Listed:
    """A bundle of it, which holds nothing else."""
    file.write_bytes(b"a bundle")
    given: dict[str, Any] = {"beside": {}, "replay": None, "foreign": (), "left_out": {}, **more}
    return Listed(evaluation=one, file=file, source=file, **given)


OURS = judged_by("ours", result("softmax", 2.0, evidence=Evidence(HOSTILE)), result("gemm", None))
THEIRS = judged_by("theirs", result("softmax", 4.0), result("rope", 0.5, family="torch2hip"))
OWNED = judged_by(
    f"x{HOSTILE}",
    result("softmax", 3.0, evidence=Evidence(HOSTILE, HOSTILE)),
    device=HOSTILE,
    kabuild=HOSTILE,
)


@pytest.fixture
def items(tmp_path: Path) -> list[Listed]:
    everything = (OURS, THEIRS, OWNED)
    return listed_once([listed(one, tmp_path / "any.kab") for one in everything])


def made(items: list[Listed], title: str = "All") -> dict[str, str]:
    return {path: page.decode() for path, page in Pages(items, title).all()}


def test_what_bundles_hold_is_text_on_every_page(items: list[Listed]) -> None:
    left_out = {HOSTILE: [HOSTILE]}
    marked = [replace(item, foreign=(HOSTILE,), left_out=left_out) for item in items]
    pages = made(marked, title=f"<b>{HOSTILE}")
    assert len(pages) == 3 + 3 + 3 + 3  # with the index, the records and the data
    for path, page in pages.items():
        if path.endswith(".html"):
            found = Elements(page)
            assert found.tags.count("script") == 1, path
            assert not {"img", "b"} & {*found.tags}, path
            assert not found.handlers, path


def test_every_link_leads_to_a_place_of_the_site(items: list[Listed], tmp_path: Path) -> None:
    files = [(f"bundles/{item.digest}.kab", item.file) for item in items]
    write_site(tmp_path / "site", [*Pages(items, "All").all(), *files])
    assert followed_links(tmp_path / "site") > 100


@pytest.mark.parametrize(
    "results",
    [
        (),
        (result("softmax", None),),
        (result("softmax", 2.0), in_trial(result("softmax", 3.0), 2)),
    ],
    ids=["no results", "nothing right", "two trials"],
)
def test_little_is_a_site_too(tmp_path: Path, results: tuple[TaskResult, ...]) -> None:
    (item,) = listed_once([listed(judged_by("a", *results), tmp_path / "any.kab")])
    files = [(f"bundles/{item.digest}.kab", item.file)]
    write_site(tmp_path / "site", [*Pages([item], "All").all(), *files])
    assert followed_links(tmp_path / "site") > 10


def test_a_name_has_one_address_and_no_other_name_has_it() -> None:
    names = ["a-b", "a/b", "A-b", "a--b", "a b", "a-b ", "ä-b", "", "..", "a" * 300, "con~1"]
    found = [slug(name) for name in names]
    assert len({*map(str.lower, found)}) == len(names)
    assert all(re.fullmatch(r"[a-z0-9_~.-]{1,120}", text) for text in found)
    assert not [text for text in found if text.startswith(".")]
    assert task_page("//tasks/hip2hip/softmax") == "tasks/tasks--hip2hip--softmax.html"
    assert agent_page("expert") == "agents/expert.html"


def test_equal_bundles_are_one_and_make_equal_sites(items: list[Listed]) -> None:
    assert listed_once([*items, items[0]]) == items
    assert made(items) == made(listed_once([*items, *items]))


def test_a_figure_has_its_interval_and_the_command_that_reruns_it(items: list[Listed]) -> None:
    page = made(items)[task_page("//tasks/hip2hip/softmax")]
    assert "2.00x ±11 %" in page
    assert "1.80x to 2.20x" in page
    assert f"kabuild replay {OURS.digest}.kab //tasks/hip2hip/softmax<" in page
    assert "speedups of //tasks/hip2hip/softmax on cuda: NVIDIA H200" in page  # the history


def test_only_what_a_replay_reproduced_is_a_record(tmp_path: Path) -> None:
    """The faster one is named as published, and the record stays with the one that was rerun."""
    label = "//tasks/hip2hip/softmax:softmax"
    gates = {"perf": "reproduced", "compile": "same outcome", "correctness": "reproduced"}
    task = "//tasks/hip2hip/softmax"

    def recorded(
        now: float = 1e6,
        differing: str | None = "",
        left_out: Mapping[str, Sequence[str]] = MappingProxyType({}),
        **other: str,
    ) -> str:
        said = {f"{label}.{gate}": word for gate, word in (gates | other).items()}
        keyed = [_keyed(OURS, 1), _keyed(THEIRS, 2)]
        cases = next(result for result in keyed[0].results if result.task == task).cases
        again = {
            f"{label}.perf": {str(case["config"]): {**case, "candidate_ns": now} for case in cases}
        }
        both = [listed(one, tmp_path / "any.kab") for one in keyed]
        replay = Replay(said, None if differing is None else frozenset({differing}), again)
        found = listed_once([replace(both[0], replay=replay, left_out=left_out), both[1]])
        return made(found)["records.html"]

    assert f'1 ms by <a href="bundles/{OURS.digest}.html">ours' in recorded()
    assert "1 ms by" in recorded(now=9e5), "a shorter time that nobody published"
    assert "3 ms by" in recorded(now=3e6), "the time that was measured again"
    assert "1 ms by" in recorded(differing="//tasks/hip2hip/gemm")
    assert "1 ms by" not in recorded(differing=task), "such as the baseline's compilation"
    assert "1 ms by" not in recorded(differing=None), "such as the runner's"
    assert "1 ms by" in recorded(left_out={"unseen": ["//tasks/hip2hip/gemm"]})
    assert "1 ms by" not in recorded(left_out={"unseen": [task]})
    for word in ("different", "same outcome", "not comparable"):
        assert "1 ms by" not in recorded(perf=word)
    assert "1 ms by" not in recorded(correctness="different")


def test_a_replay_tells_of_which_tasks_something_differs_that_is_no_gate(tmp_path: Path) -> None:
    """A gate replays with a slow baseline, if only its compilation shows that it is another one."""
    path = tmp_path / "a.kab.replay.json"
    figure = {"config": "n=1", "then": {"candidate_ns": 1.0}, "now": {"candidate_ns": 9.0}}
    rest = {"result": "different", "figures": []}
    actions = [
        {**rest, "label": "//a:a.baseline.compile", "task": "//a", "gate": ""},
        {**rest, "label": "//a:a.perf", "task": "//a", "gate": "perf"},
        {**rest, "label": "//b:b.perf", "task": "//b", "gate": "perf", "figures": [figure]},
    ]
    path.write_text(json.dumps({"bundle": "2", "actions": actions}))
    replay = read_replay(path, "2")
    assert replay.differing == frozenset({"//a"})
    assert replay.again == {"//b:b.perf": {"n=1": {"candidate_ns": 9.0}}}

    runner = {**rest, "label": "//toolchains/hip:cpu.runner", "task": "//toolchains/hip:cpu"}
    path.write_text(json.dumps({"bundle": "2", "actions": [*actions, {**runner, "gate": ""}]}))
    assert read_replay(path, "2").differing is None


def _keyed(one: Evaluation, times: float) -> Evaluation:
    """With gates that have records, as those of a bundle do, and kernels so many times faster."""

    def gate(said: GateResult) -> GateResult:
        cases = [
            {**item, "candidate_ns": 1e6 / times, "baseline_ns": 1e6 / times * item["speedup"]}
            for item in said.data.get("cases", ())
        ]
        return replace(said, key="0" * 64, data={**said.data, "cases": cases})

    results = [replace(r, gates={n: gate(g) for n, g in r.gates.items()}) for r in one.results]
    return replace(one, results=tuple(results))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "is not the output of kabuild replay --json"),
        ('{"actions": []}', "is not the output of kabuild replay --json"),
        ('{"bundle": "1", "actions": [1]}', "is not the output of kabuild replay --json"),
        ('{"bundle": "1", "actions": []}', "belongs to another bundle"),
    ],
)
def test_a_replay_of_something_else_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "a.kab.replay.json"
    path.write_text(text)
    with pytest.raises(BundleError, match=said):
        read_replay(path, "2")


def test_an_older_site_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write_site(site, [("a.html", b"1"), ("b/c.html", b"2")])
    write_site(site, [("a.html", b"3")])
    assert sorted(path.name for path in site.iterdir()) == ["a.html", "site.json"]
    assert (site / "a.html").read_bytes() == b"3"
    assert [path.name for path in tmp_path.iterdir()] == ["site"]

    (site / "CNAME").write_text("mine")
    with pytest.raises(UsageError, match="did not write: CNAME"):
        write_site(site, [("a.html", b"4")])
    assert (site / "a.html").read_bytes() == b"3"
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="is not a directory"):
        check_directory(tmp_path / "file")
    with pytest.raises(UsageError, match="is not a directory"):
        check_directory(tmp_path / "absent/site")


def test_a_site_that_cannot_be_finished_leaves_the_older_one(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write_site(site, [("a.html", b"1")])
    with pytest.raises(FileNotFoundError):
        write_site(site, [("a.html", b"2"), ("b.kab", tmp_path / "absent.kab")])
    assert (site / "a.html").read_bytes() == b"1"
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


@needs_browser
def test_a_browser_shows_filters_and_no_page_wider_than_a_phone(
    items: list[Listed], tmp_path: Path
) -> None:
    """Each page in a frame of a phone's width, the index behind an address with a filter."""
    site = tmp_path / "site"
    write_site(site, Pages(items, "All").all())
    addresses = [path for path in made(items) if path.endswith(".html")]
    addresses[0] += "#agent=theirs&task=soft"
    frames = "".join(
        f'<iframe width="390" height="800" src="{path}"></iframe>' for path in addresses
    )
    page = site / "all.html"
    page.write_text(f"""<!DOCTYPE html>{frames}<script>addEventListener("load", () => {{
      const found = [...document.querySelectorAll("iframe")].map((frame) => {{
        const inner = frame.contentDocument, root = inner.documentElement;
        const shown = [...inner.querySelectorAll("tr[data-machine]")].filter((row) => !row.hidden);
        const tasks = shown.map((row) => row.dataset.task).filter((task) => task);
        return [inner.title !== "owned" && root.scrollWidth <= 390, tasks.length];
      }});
      document.title = JSON.stringify(found);
    }});</script>""")
    shown = re.search(r"<title>(.*?)</title>", browse(page, "--allow-file-access-from-files"))
    assert shown is not None
    assert shown[1].count("true") == len(addresses), list(
        zip(addresses, shown[1].split("],"), strict=False)
    )
    assert shown[1].startswith("[[true,1]"), "the filter leaves one task of the agent theirs"
