"""Watching: every save is judged, stale work is stopped, and silence means nothing new."""

from __future__ import annotations

import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from kabuild.builder import Builder
from kabuild.loading.request import Request
from kabuild.model.digest import Digest
from kabuild.model.event import ActionExecuting, ActionSettled, Event
from kabuild.model.gate import NO_GATE
from kabuild.model.gate_result import GateResult
from kabuild.model.label import Label
from kabuild.model.result import Outcome, Settled
from kabuild.model.task_result import TaskResult
from kabuild.model.verdict import GateVerdict, Verdict
from kabuild.pipeline import Summary, load, plan
from kabuild.report.watch_report import WatchReport
from kabuild.store import Store
from kabuild.watch import Watch
from kabuild.watched import Places, paths_of
from tests.testkit.cli import CliWorkspace
from tests.testkit.generated import generate

KERNEL = "tasks/family0/t0/kernel.hip"
Step = Callable[[], Path | None]


class Watched:
    """A watch whose changes are told by the test, each once the build before it has ended."""

    def __init__(self, root: Path, store: Path) -> None:
        self.root = root
        self.store = Store.open(store)
        self.lines: list[str] = []
        self.errors: list[str] = []
        self.summaries: list[Summary] = []
        self.report = WatchReport(self.lines.append)
        self.settled = threading.Semaphore(0)
        self.request = Request(
            patterns=("//tasks/family0/t0",), cwd=root, gates=("compile", "perf")
        )

    def emit(self, event: Event) -> None:
        self.report.emit(event)

    def run(self, *steps: Step, wait: bool = True) -> None:
        def changes(_: Callable[[], Places]) -> Iterator[set[Path]]:
            for step in steps:
                assert not wait or self.settled.acquire(timeout=60)
                changed = step()
                yield {changed} if changed else set()
            assert self.settled.acquire(timeout=60)

        builder = Builder(self.store, self, lambda: nullcontext(threading.Event()))
        watch = Watch(self.request, builder, on_summary=self._finish, on_error=self._fail)
        watch.run(changes, builder.plan(self.request))

    def _finish(self, summary: Summary) -> None:
        self.summaries.append(summary)
        self.report.finish(summary.table, list(summary.settled.values()), "waiting")
        self.settled.release()

    def _fail(self, error: Exception) -> None:
        self.errors.append(str(error))
        self.report.fail(error)
        self.settled.release()

    def write(self, path: str, text: str) -> Step:
        def step() -> Path:
            (self.root / path).write_text(text)
            return self.root / path

        return step


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    generate(tmp_path / "work", 1, shared=1, age=0)
    made = Watched(tmp_path / "work", tmp_path / "store")
    with made.store:
        yield made


def words(lines: list[str]) -> list[str]:
    return [" ".join(line.split()[:2]) for line in lines]


def test_each_save_is_judged(watched: Watched) -> None:
    watched.run(watched.write(KERNEL, "bad\n"), watched.write(KERNEL, "// good\n"))

    assert [summary.table[0].passed for summary in watched.summaries] == [True, False, True]
    gates = ["compile PASS", "correctness PASS", "perf PASS"]
    assert words(watched.lines)[:5] == [*gates, "waiting", "compile FAIL"]


def test_what_changes_nothing_says_nothing(watched: Watched) -> None:
    watched.run(watched.write(KERNEL, (watched.root / KERNEL).read_text()))

    assert len(watched.summaries) == 2
    assert watched.lines[-1] == "waiting"
    assert watched.lines.count("waiting") == 1


def test_a_declaration_that_breaks_is_named_and_may_be_mended(watched: Watched) -> None:
    build = "tasks/family0/t0/BUILD.toml"
    good = (watched.root / build).read_text()
    watched.run(
        watched.write(build, good.replace("kernel ", "kernal ")), watched.write(build, good)
    )

    assert len(watched.errors) == 1
    assert f"{build}:3" in watched.errors[0]
    assert watched.summaries[-1].table[0].passed


def test_a_rule_that_breaks_is_named_and_may_be_mended(watched: Watched) -> None:
    rule = "rules/copied/rule.py"
    good = (watched.root / rule).read_text()
    watched.run(watched.write(rule, "RULE = None\n"), watched.write(rule, good))

    assert len(watched.errors) == 1
    assert f"{rule}:" in watched.errors[0]
    said = next(index for index, line in enumerate(watched.lines) if line.startswith("error: "))
    told = ["//tasks/family0/t0  PASS again", "waiting"]
    assert watched.lines[said + 1 :] == told, "whoever mended it is told"


def test_what_was_missing_is_found_when_it_is_saved(watched: Watched) -> None:
    """No plan has named that file yet."""
    build = "tasks/family0/t0/BUILD.toml"
    text = (watched.root / build).read_text().replace("kernel.hip", "new.hip")
    watched.run(watched.write(build, text), watched.write("tasks/family0/t0/new.hip", "// new\n"))

    assert len(watched.errors) == 1
    assert watched.summaries[-1].table[0].passed


def test_an_agent_that_broke_off_is_named_as_test_names_it() -> None:
    """Once for each way it ends: gates pass the kernel that it left alone."""
    label, lines = Label("tasks/t", "t.agent"), list[str]()
    report = WatchReport(lines.append)
    for message in ("crashed", "crashed", "", "crashed"):
        facts = {"state": "failed" if message else "finished", "message": message}
        report.emit(ActionSettled(Settled(label, Outcome.DONE, facts=facts), "Agent", 0.0))
        report.finish([], [], "waiting")

    assert lines == ["//tasks/t:t.agent  agent: failed: crashed", "waiting"] * 2


def test_what_is_judged_again_after_an_error_says_so(watched: Watched) -> None:
    """Whose gates are the same as before it."""
    build = "tasks/family0/t0/BUILD.toml"
    good = (watched.root / build).read_text()
    watched.run(watched.write(build, "[["), watched.write(build, good))

    assert watched.lines[-2:] == ["//tasks/family0/t0  PASS again", "waiting"]


def test_what_is_judged_again_after_the_machine_failed_says_so() -> None:
    lines: list[str] = []
    report = WatchReport(lines.append)
    label = Label("t", "t.compile")
    broken = Settled(label, Outcome.INFRA, message="k.hip has more than 5 bytes")
    passed = GateVerdict("compile", Verdict.PASS)
    well = Settled(label, Outcome.DONE, Digest.of(b""), verdict=passed)
    for item in (well, broken, well, well):
        report.emit(ActionSettled(item, "Compile", 0.0))
        task = TaskResult.of(Label("t", "t"), [GateResult.of(NO_GATE, item)])
        report.finish([task], [item], "waiting")

    assert words(lines)[:2] == ["compile PASS", "waiting"]
    assert "more than 5 bytes" in lines[2]
    assert lines[3:] == ["waiting", "//t  PASS again", "waiting"]


def test_stale_work_is_stopped(watched: Watched) -> None:
    rule = watched.root / "rules/copied/rule.py"
    rule.write_text(
        rule.read_text().replace(
            '"/bin/sh", "-c", ', '"/bin/sh", "-c", "grep -q slow kernel && sleep 60 && exit 1; " + '
        )
    )
    (watched.root / KERNEL).write_text("// slow\n")
    runs = threading.Event()
    emit = watched.report.emit

    def listen(event: Event) -> None:
        if isinstance(event, ActionExecuting):
            runs.set()
        emit(event)

    watched.emit = listen  # type: ignore[method-assign]

    def save() -> Path:
        assert runs.wait(30)
        (watched.root / KERNEL).write_text("// fast\n")
        return watched.root / KERNEL

    watched.run(save, wait=False)

    assert watched.summaries
    assert all(s.table[0].passed for s in watched.summaries), "the slow version came to no end"


def test_a_file_that_is_saved_while_it_is_read_is_read_again(watched: Watched) -> None:
    """The action has another file than was planned: that says nothing of either."""
    saved = threading.Event()
    emit = watched.report.emit

    def listen(event: Event) -> None:
        if not saved.is_set() and isinstance(event, ActionExecuting):
            (watched.root / KERNEL).write_text("// saved meanwhile\n")
            saved.set()
        emit(event)

    watched.emit = listen  # type: ignore[method-assign]
    watched.run()

    assert saved.is_set()
    assert [summary.table[0].passed for summary in watched.summaries] == [True]


def test_what_is_watched_is_what_loading_and_the_actions_read(watched: Watched) -> None:
    (watched.root / "agents").mkdir()
    (watched.root / "agents/BUILD.toml").write_text("")
    planned = plan(watched.request, load(watched.request), watched.store)
    planned.loaded.loader.package("agents")

    paths = paths_of(planned)

    assert {str(path.relative_to(watched.root)) for path in paths} == {
        "WORKSPACE.toml",
        "agents/BUILD.toml",
        "rules/copied/data",
        "rules/copied/rule.py",
        "tasks/family0/t0/BUILD.toml",
        KERNEL,
        "tasks/family0/t0/reference.py",
    }


def test_an_error_of_kabuild_itself_ends_the_watch(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread of a build would end unseen, and the watch would wait for ever."""

    def fail(*_: object) -> Summary:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Watch, "_build_once", fail)
    builder = Builder(watched.store, watched, lambda: nullcontext(threading.Event()))
    watch = Watch(watched.request, builder, on_summary=watched._finish, on_error=watched._fail)

    with pytest.raises(ZeroDivisionError, match="a bug"):
        watch.run(lambda _: iter(set, None), builder.plan(watched.request))


def test_the_program_follows_a_file_until_it_is_interrupted(tmp_path: Path) -> None:
    generate(tmp_path / "work", 1, shared=1, age=0)
    workspace = CliWorkspace(tmp_path / "work", tmp_path / "store")
    with subprocess.Popen(
        workspace.command("watch", "//tasks/family0/t0", "--gates=compile"),
        cwd=workspace.root,
        env=workspace.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline().startswith("compile      PASS")
        assert "waiting for changes" in program.stdout.readline()
        (workspace.root / KERNEL).write_text("bad\n")
        assert program.stdout.readline().startswith("compile      FAIL")
        program.send_signal(signal.SIGINT)
        rest = program.stdout.read()
    assert "Traceback" not in rest
    assert "KeyboardInterrupt" not in rest
    assert program.returncode == 0


@contextmanager
def watching(folder: Path, solution: Path) -> Iterator[Callable[[str], None]]:
    """``kabuild watch`` of ``solution``; waits for a line of its output with a given start.

    At the end it is interrupted, which it must survive without a traceback.
    """
    generate(folder / "work", 1, shared=1, age=0)
    workspace = CliWorkspace(folder / "work", folder / "store")
    rule = workspace.root / "rules/copied/rule.py"
    given = '"kernel": ctx.options.solution or ctx.attrs["kernel"]'
    rule.write_text(rule.read_text().replace('"kernel": ctx.attrs["kernel"]', given))
    with subprocess.Popen(
        workspace.command(
            "watch", "//tasks/family0/t0", "--gates=compile", f"--solution={solution}"
        ),
        cwd=workspace.root,
        env=workspace.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as program:
        assert program.stdout is not None
        stop = threading.Timer(300, program.kill)
        stop.start()

        def await_line(start: str) -> None:
            assert any(line.startswith(start) for line in program.stdout or ()), start

        yield await_line
        stop.cancel()
        program.send_signal(signal.SIGINT)
        rest = program.stdout.read()
    assert "Traceback" not in rest
    assert program.returncode == 0


def test_what_is_removed_and_made_again_is_followed(tmp_path: Path) -> None:
    """The file, and its directory, which inotify forgets when it is removed."""
    kernel = tmp_path / "mine/my.hip"
    kernel.parent.mkdir()
    kernel.write_text("// good\n")
    with watching(tmp_path, kernel) as await_line:
        await_line("compile      PASS")
        kernel.unlink()
        await_line("error")
        kernel.write_text("bad\n")
        await_line("compile      FAIL")
        shutil.copytree(kernel.parent, tmp_path / "kept")
        shutil.rmtree(kernel.parent)
        await_line("error")
        (tmp_path / "kept/my.hip").write_text("// good again\n")
        shutil.copytree(tmp_path / "kept", kernel.parent)
        await_line("compile      PASS")


def test_a_link_is_followed_and_the_store_may_vanish(tmp_path: Path) -> None:
    """A link to another file, that file saved anew, and a store that somebody removes."""
    one, other, link = tmp_path / "one/k.hip", tmp_path / "other/k.hip", tmp_path / "link.hip"
    for file, text in ((one, "// good\n"), (other, "bad\n")):
        file.parent.mkdir()
        file.write_text(text)
    link.symlink_to(one)
    with watching(tmp_path, link) as await_line:
        await_line("compile      PASS")
        link.unlink()
        link.symlink_to(other)
        await_line("compile      FAIL")
        other.write_text("// good at last\n")
        await_line("compile      PASS")
        while (tmp_path / "store").exists():  # the build may still write its last files
            shutil.rmtree(tmp_path / "store", ignore_errors=True)
        other.write_text("bad again\n")
        await_line("compile      FAIL")
