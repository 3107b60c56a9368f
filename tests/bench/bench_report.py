"""What a report of 200 tasks and three agents costs: to make, to keep, to open.

    python tests/bench/bench_report.py [TASKS] [AGENTS]

Opening is timed as a whole headless browser that loads the page and paints its first screen,
less the same browser on an empty page (medians of five).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from kabuild.model.task_result import Evidence
from kabuild.report.evaluation import Evaluation
from kabuild.report.page.render import render_page
from tests.kabuild.report.test_page import evaluation, result
from tests.testkit.browser import BROWSER, paint

REPEATS = 5
ROOT = Path(__file__).parents[2]


def make(tasks: int, agents: int) -> list[Evaluation]:
    """Evaluations with kernels of real length, one in seven wrong."""
    folder = ROOT / "tasks/hip2hip"
    baseline = (folder / "softmax/softmax.hip").read_text()
    candidate = (folder / "softmax/solutions/expert/softmax.hip").read_text()
    return [
        evaluation(
            f"agent{agent}",
            *(
                result(
                    f"task{task}",
                    None if (task + agent) % 7 == 0 else 1.0 + task % 5,
                    family=("hip2hip", "triton2triton")[task % 2],
                    evidence=Evidence(candidate, baseline),
                )
                for task in range(tasks)
            ),
        )
        for agent in range(agents)
    ]


def _opened(page: Path) -> float:
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        paint(page, page.with_suffix(".png"))
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main() -> None:
    """Three figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", type=int, nargs="?", default=200, help="how many (200)")
    parser.add_argument("agents", type=int, nargs="?", default=3, help="how many (3)")
    options = parser.parse_args()
    tasks, agents = options.tasks, options.agents
    evaluations = make(tasks, agents)
    began = time.perf_counter()
    text = render_page(evaluations, title="bench")
    print(f"{tasks} tasks x {agents} agents: made in {time.perf_counter() - began:.2f} s")
    print(f"size: {len(text) / 1e6:.2f} MB")
    if BROWSER is None:
        print("opened: no browser here")
        return
    with tempfile.TemporaryDirectory() as directory:
        page, empty = Path(directory, "report.html"), Path(directory, "empty.html")
        page.write_text(text)
        empty.write_text("<!DOCTYPE html><title>empty</title>")
        blank, opened = _opened(empty), _opened(page)
    print(f"opened: {opened - blank:.2f} s beyond an empty page's {blank:.2f} s")


if __name__ == "__main__":
    main()
