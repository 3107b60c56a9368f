"""What every Strategy must do with a command, inside a sandbox and without one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kabuild.base.errors import AnalysisError, Interrupted, Reason
from kabuild.execution import Execution, Inputs, LocalStrategy, prepare
from kabuild.model.action import Action, Limits, Literal, Toolchain
from kabuild.sandbox import Spawner, probe
from kabuild.store import BlobMissingError, Store
from tests.testkit.actions import command


@pytest.fixture(scope="module")
def spawner() -> Iterator[Spawner]:
    with Spawner() as spawner:
        yield spawner


class Subject:
    """A strategy on a store of its own."""

    def __init__(self, store: Store, spawner: Spawner, *, hermetic: bool) -> None:
        self.store = store
        self.hermetic = hermetic
        self.warnings: list[str] = []
        self.strategy = LocalStrategy(store, spawner, warn=self.warnings.append)

    def run(self, action: Action, cancel: threading.Event | None = None) -> Execution:
        inputs = Inputs({}, self.store.index)
        root = inputs.root(action, {})
        inputs.supply(root, self.store.cas)
        prepared = prepare(action, root, hermetic=self.hermetic)
        return self.strategy.run(prepared, cancel or threading.Event())

    def shell(self, script: str, **rest: object) -> Execution:
        return self.run(command("a", "/bin/sh", "-c", script, **rest))  # type: ignore[arg-type]

    def read(self, execution: Execution, path: str) -> bytes:
        file = execution.result.file(path)
        assert file, f"no output {path}"
        return self.store.cas.get(file.digest)

    def stream(self, execution: Execution, name: str) -> str:
        digest = getattr(execution.result, name)
        return self.store.cas.get(digest).decode() if digest else ""


@pytest.fixture(params=["sandboxed", "bare"])
def subject(request: pytest.FixtureRequest, tmp_path: Path, spawner: Spawner) -> Iterator[Subject]:
    if request.param == "sandboxed" and probe():
        pytest.skip(f"no sandboxes here: {probe()}")
    with Store.open(tmp_path / "store") as store:
        yield Subject(store, spawner, hermetic=request.param == "sandboxed")
        assert not [p for p in (store.root / "tmp").glob("*/*") if p.name != "lock"], "stage left"


def test_outputs_and_streams_are_in_the_store(subject: Subject) -> None:
    execution = subject.shell(
        "cat in.txt > out/result; echo said; echo complained >&2",
        inputs={"in.txt": Literal(b"given\n")},
    )

    assert execution.fault == ""
    assert execution.result.exit_code == 0
    assert subject.read(execution, "result") == b"given\n"
    assert subject.stream(execution, "stdout") == "said\n"
    assert subject.stream(execution, "stderr") == "complained\n"
    assert execution.result.seconds > 0
    assert execution.result.hermetic == subject.hermetic


def test_silence_has_no_streams(subject: Subject) -> None:
    execution = subject.shell("true > out/result")

    assert execution.result.stdout is None
    assert execution.result.stderr is None


def test_trees_and_x_bits_come_back(subject: Subject) -> None:
    execution = subject.shell(
        "mkdir -p out/tree/deep out/other; echo a > out/tree/a; echo b > out/tree/deep/b;"
        "chmod +x out/tree/deep/b; echo undeclared > out/other/x",
        outputs=("tree",),
    )

    found = [(file.path, file.executable) for file in execution.result.files]
    assert found == [("tree/a", False), ("tree/deep/b", True)]
    assert execution.result.directories == ("tree",)


def test_a_failing_command_is_data(subject: Subject) -> None:
    execution = subject.shell("echo half > out/result; exit 7")

    assert execution.result.exit_code == 7
    assert execution.fault == ""
    assert subject.read(execution, "result") == b"half\n"


def test_a_missing_output_is_absent(subject: Subject) -> None:
    assert subject.shell("true").result.files == ()


def test_an_output_that_is_a_link_is_refused(subject: Subject) -> None:
    execution = subject.shell("ln -s /etc/passwd out/result")

    assert execution.result.files == ()
    assert "'result' cannot be kept" in execution.fault


def test_too_long_is_a_fault(subject: Subject) -> None:
    execution = subject.shell("sleep 60", limits=Limits(timeout=0.3))

    assert execution.fault == "timed out after 0.3 s"
    assert execution.result.exit_code != 0


def test_a_crash_is_a_fault(subject: Subject) -> None:
    execution = subject.shell("kill -SEGV $$")

    assert execution.fault == "killed by signal 11"
    assert execution.result.exit_code == 128 + 11


def test_a_stop_kills_the_command(subject: Subject) -> None:
    cancel = threading.Event()
    cancel.set()

    with pytest.raises(Interrupted) as caught:
        subject.run(command("a", "/bin/sh", "-c", "sleep 60"), cancel)
    assert caught.value.reason is Reason.INTERRUPTED


def test_the_environment_is_ours_alone(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKED", "secret")

    execution = subject.shell("env > out/result", env={"MINE": "1", "TZ": "CET"})

    found = dict(
        line.split("=", 1) for line in subject.read(execution, "result").decode().splitlines()
    )
    assert found["MINE"] == "1"
    assert found["TZ"] == "CET"
    assert (found["HOME"], found["LANG"], found["PYTHONHASHSEED"]) == ("/tmp", "C.UTF-8", "0")
    assert "LEAKED" not in found


def test_tokens_become_the_toolchains_home(subject: Subject, tmp_path: Path) -> None:
    home = tmp_path / "tools"
    home.mkdir()
    (home / "tool.sh").write_text('echo "$0 $WHERE" > out/result\n')
    tools = Toolchain("mine", "tool", b"{}\n", home=str(home), mounts=(str(home),))

    execution = subject.run(
        command(
            "a",
            "/bin/sh",
            "${toolchain:mine}/tool.sh",
            env={"WHERE": "<${toolchain:mine}>"},
            toolchains=[tools],
        )
    )

    assert subject.read(execution, "result").decode() == f"{home}/tool.sh <{home}>\n"


def test_an_undeclared_toolchain_is_named(subject: Subject) -> None:
    with pytest.raises(AnalysisError, match="'nvcc', which it does not declare") as caught:
        subject.run(command("a", "${toolchain:nvcc}/bin/nvcc"))
    assert caught.value.reason is Reason.NO_TOOLCHAIN


def test_an_input_that_is_gone_is_noticed_before_the_run(subject: Subject) -> None:
    action = command("a", "/bin/sh", "-c", "true", inputs={"x": Literal(b"gone")})
    inputs = Inputs({}, subject.store.index)
    prepared = prepare(action, inputs.root(action, {}), hermetic=subject.hermetic)

    with pytest.raises(BlobMissingError):
        subject.strategy.run(prepared, threading.Event())


def test_inputs_cannot_spoil_the_store(subject: Subject) -> None:
    """In a sandbox they are read-only; without one the store notices the damage."""
    subject.shell(
        "chmod u+w in.txt; echo spoilt > in.txt; true",
        inputs={"in.txt": Literal(b"precious\n")},
    )

    execution = subject.shell("cat in.txt > out/result", inputs={"in.txt": Literal(b"precious\n")})
    assert subject.read(execution, "result") == b"precious\n"


@pytest.mark.parametrize("rest", [{"outputs": ("../x",)}, {"outputs": ("/x",)}])
def test_an_action_that_no_sandbox_accepts_is_the_rules_mistake(
    subject: Subject, rest: dict[str, object]
) -> None:
    with pytest.raises(AnalysisError, match="//t:a: ") as caught:
        subject.shell("true", **rest)
    assert caught.value.reason is Reason.BAD_RULE
