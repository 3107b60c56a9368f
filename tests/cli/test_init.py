"""From nothing to a verdict: ``kabuild init``, ``new`` and ``help``."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from kabuild.cli.problems import translated
from tests.testkit.cli import CliWorkspace, copy_store

CALL = "//tasks/call/mine"
HIP, TRITON, TORCH = (
    f"//tasks/{family}/mine" for family in ("hip2hip", "triton2triton", "torch2hip")
)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory, runtime_store: Path) -> CliWorkspace:
    """A workspace that ``init`` made, with a task of each family and an agent."""
    directory = tmp_path_factory.mktemp("init")
    above = CliWorkspace(directory, directory / "store")
    copy_store(runtime_store, above.store)
    made = above.run("init", "workspace")
    assert made.code == 0, made.err
    assert made.out.endswith("judge its tasks with: cd workspace && kabuild test //...\n")
    workspace = CliWorkspace(directory / "workspace", above.store)
    for family in ("hip2hip", "triton2triton", "torch2hip", "call"):
        assert workspace.run("new", "task", f"{family}/mine").code == 0
    assert workspace.run("new", "agent", "first").code == 0
    assert workspace.run("new", "agent", "second").code == 0
    return workspace


def test_what_init_and_new_write_is_judged(started: CliWorkspace) -> None:
    ran = started.run("test", "//...", "--gates=compile,correctness", "--json")

    verdicts = {(e["task"].partition(":")[0], e["gate"]): e["verdict"] for e in ran.json["targets"]}
    passing = ("//tasks/hip2hip/silu", HIP, TRITON, CALL)
    assert {verdicts[task, "correctness"] for task in passing} == {"PASS"}, ran.err
    assert verdicts[TORCH, "compile"] == "PASS"
    assert verdicts[TORCH, "correctness"] == "FAIL"  # a skeleton computes nothing yet


def test_new_tasks_deserve_to_be_in_a_benchmark(started: CliWorkspace) -> None:
    ran = started.run("validate", HIP, CALL, "--samples=4", "--json")

    assert ran.code == 0, ran.out + ran.err


def test_a_new_agent_hands_in_what_it_changed(started: CliWorkspace) -> None:
    ran = started.run("test", HIP, "--agent=//agents:second", "--gates=correctness", "--json")

    assert ran.gate("correctness")["verdict"] == "PASS", ran.err
    handed_in = started.root / "out/tasks/hip2hip/mine/mine.agent/solution/mine.hip"
    assert "kThreads = 128;" in handed_in.read_text()


def test_a_workspace_inside_of_another_is_said_to_be_apart(tmp_path: Path) -> None:
    outer = CliWorkspace(tmp_path, tmp_path / "store")
    assert outer.run("init").err == ""
    assert (
        outer.run("init", "inner").err == f"it is apart from the workspace around it, {tmp_path}\n"
    )
    assert "inner" not in outer.run("query", "//...").out


def test_nothing_is_overwritten(started: CliWorkspace) -> None:
    kernel = started.root / "tasks/hip2hip/mine/mine.hip"
    before = kernel.read_text()

    for words in (("init",), ("new", "task", "hip2hip/mine"), ("new", "agent", "first")):
        ran = started.run(*words)
        assert ran.code == 2
        assert "exists; nothing was changed" in ran.err
    assert kernel.read_text() == before


def test_links_to_nothing_are_not_followed(tmp_path: Path) -> None:
    """A stranger's directory may have them: what is written would lie elsewhere."""
    place = CliWorkspace(tmp_path / "given", tmp_path / "store")
    place.root.mkdir()
    for name in (".gitignore", "agents/mine.py"):
        (place.root / name).parent.mkdir(exist_ok=True)
        (place.root / name).symlink_to(tmp_path / "elsewhere")

    assert place.run("init").code == 0
    assert "exists; nothing was changed" in place.run("new", "agent", "mine").err
    (place.root / "WORKSPACE.toml").unlink()
    (place.root / "WORKSPACE.toml").symlink_to(tmp_path / "elsewhere")
    assert "exists; nothing was changed" in place.run("init").err

    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("task", "hip2hop/mine2"), "did you mean 'hip2hip'?"),
        (("task", "mine2"), "families: call, hip2hip, torch2hip, triton2triton"),
        (("task", "hip2hip/2nd"), "'2nd' cannot be the name"),
        (("task", "hip2hip/a/b"), "'a/b' cannot be the name"),
        (("task", "hip2hip/class"), "it is a keyword of Python: choose another name"),
        (("task", "hip2hip/../../x"), "'../../x' cannot be the name"),
        (("task", "hip2hip/float"), "'float' cannot be declared: 'float' is not a valid entry"),
        (("task", "torch2hip/template"), "it is a keyword"),
        (("task", "triton2triton/tl"), "'tl' cannot be the name of the task: it has another"),
        (("task", "call/reference"), "'reference' cannot be the name of the task"),
        (("task", "agent/mine"), "unknown family 'agent'"),
        (("agent", "../x"), "'../x' cannot be the name"),
    ],
)
def test_bad_names_are_refused(started: CliWorkspace, words: tuple[str, ...], said: str) -> None:
    before = sorted(started.root.glob("tasks/*/*"))

    ran = started.run("new", *words)

    assert ran.code == 2
    assert said in ran.err
    assert sorted(started.root.glob("tasks/*/*")) == before


@pytest.mark.parametrize("name", ['a "quoted" name', "back\\slash", "hex\\x41", "\U0001f600"])
def test_a_workspace_takes_any_directory_name(tmp_path: Path, name: str) -> None:
    above = CliWorkspace(tmp_path, tmp_path / "store")

    assert above.run("init", name).code == 0

    file = tmp_path / name / "WORKSPACE.toml"
    assert tomllib.loads(file.read_text())["name"] == name


@pytest.mark.parametrize("name", ["two\nlines", "a\ttab", "red\x1b[31m", "turned\u202eback"])
def test_a_name_that_does_not_print_is_refused(tmp_path: Path, name: str) -> None:
    ran = CliWorkspace(tmp_path, tmp_path / "store").run("init", name)

    assert ran.code == 2
    assert "its path has characters that do not print" in ran.err
    assert not [path for path in tmp_path.iterdir() if path.name != "store"]


def test_the_next_command_can_be_pasted(tmp_path: Path) -> None:
    ran = CliWorkspace(tmp_path, tmp_path / "store").run("init", "two words")

    assert "cd 'two words' && kabuild test //..." in ran.out


def test_a_kernel_to_be_written_is_judged_as_a_solution(tmp_path: Path) -> None:
    """The skeleton is no baseline, so no agent hands it in."""
    workspace = CliWorkspace.make(tmp_path)

    ran = workspace.run("new", "task", "torch2hip/mine")

    assert "--agent=none" not in ran.out
    assert "--solution=tasks/torch2hip/mine/mine.hip" in ran.out
    assert "--agent=none" in workspace.run("new", "task", "hip2hip/mine").out


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    workspace = CliWorkspace(tmp_path, tmp_path / "store")

    ran = workspace.run("init", "x" * 300)
    assert ran.code == 2
    assert "File name too long" in ran.err
    assert workspace.run("init", "x" * 255).code == 0
    for directory in ("file/below", "loop", "loop/below"):
        ran = workspace.run("init", directory)

        assert ran.code == 2
        assert f"{directory}/WORKSPACE.toml" in ran.err


def test_a_directory_that_does_not_exist_can_be_left_again(tmp_path: Path) -> None:
    ran = CliWorkspace(tmp_path, tmp_path / "store").run("init", "absent/../x/y")

    assert ran.code == 0, ran.err
    assert "cd x/y && kabuild test //..." in ran.out
    assert (tmp_path / "x/y/tasks/hip2hip/silu/BUILD.toml").exists()
    assert not (tmp_path / "absent").exists()


def test_a_loop_of_links_is_the_user_s_or_the_machine_s(tmp_path: Path) -> None:
    """Up to Python 3.12 Path.resolve() raises RuntimeError for one, anywhere."""
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises((RuntimeError, OSError)) as caught:
        loop.resolve(strict=True)

    told = translated(caught.value)

    assert told is not None
    assert str(loop) in str(told)
    assert translated(RuntimeError("another")) is None


def test_help_is_the_same_as_the_flag(workspace: CliWorkspace) -> None:
    assert workspace.run("help").out == workspace.run("--help").out
    assert workspace.run("help", "cache", "gc").out == workspace.run("cache", "gc", "--help").out
    ran = workspace.run("help", "tset")
    assert (ran.code, "did you mean 'test'?" in ran.err) == (2, True)


def test_a_workspace_without_tasks_says_how_to_get_one(workspace: CliWorkspace) -> None:
    ran = workspace.run("test", "//...")

    assert ran.code == 2
    assert "has no tasks yet\n  make one: kabuild new task" in ran.err


@pytest.mark.parametrize(
    ("content", "said"), [(b"\xff", "BUILD.toml: is not UTF-8"), (None, "is a device or a pipe")]
)
def test_an_agent_is_added_to_no_file_that_is_no_text(
    workspace: CliWorkspace, content: bytes | None, said: str
) -> None:
    file = workspace.write("agents/BUILD.toml", "")
    file.unlink()
    if content is None:
        file.symlink_to("/dev/zero")
    else:
        file.write_bytes(content)

    ran = workspace.run("new", "agent", "mine")

    assert ran.code in {1, 2}
    assert said in ran.err
    assert not (workspace.root / "agents/mine.py").exists()
