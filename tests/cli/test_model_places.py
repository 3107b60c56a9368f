"""Where ``kabuild model verify`` finds no model that was extracted."""

from __future__ import annotations

import pytest

from tests.testkit.cli import CliWorkspace

from .test_model_optimise import write


def test_a_loop_of_links_is_a_usage_error(workspace: CliWorkspace) -> None:
    (workspace.root / "loop").symlink_to("loop")

    ran = workspace.run("model", "verify", "loop")

    assert ran.code == 2
    assert "error: loop: Symlink loop" in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (None, 2, "write it with: kabuild model extract"),
        ("{}", 1, "it is not what 'kabuild model extract' writes"),
        (
            '{"schema": 2, "name": "m", "parts": {"x;y": {}}, "platform": "cpu"}',
            1,
            "not a Python identifier",
        ),
        (
            '{"schema":\n 2',
            1,
            "empty/model.json:2: it is not what 'kabuild model extract' writes: it",
        ),
        (
            '{"schema": 2}',
            1,
            "writes: it has no 'name'\n  write it again with: kabuild model extract",
        ),
        ("[]", 1, "a value in it is of another type"),
        ('{"schema": 1}', 1, "schema 1, expected 2"),
    ],
)
def test_a_directory_without_a_model_is_one_error(
    workspace: CliWorkspace, text: str | None, code: int, said: str
) -> None:
    workspace.write("empty/x.txt", "")
    if text is not None:
        workspace.write("empty/model.json", text)

    ran = workspace.run("model", "verify", "empty")

    assert ran.code == code
    assert said in ran.err
    assert not any(f"{name}Error" in ran.err for name in ("Key", "Type", "Value", "JSONDecode"))


@pytest.mark.parametrize("name", ["my mödel", "a" * 201])
def test_a_directory_that_no_task_can_have_is_refused_before_anything_runs(
    workspace: CliWorkspace, name: str
) -> None:
    workspace.write("net.py", "")

    ran = workspace.run("model", "extract", "net.py", "-o", f"tasks/{name}")

    assert ran.code == 2
    assert f"error: --output: tasks cannot be in tasks/{name}: " in ran.err
    assert "as in tasks/my_model" in ran.err
    assert not ran.executed


def test_a_part_without_a_solution_says_where_to_write_one(workspace: CliWorkspace) -> None:
    """It names no flag that the command does not have."""
    write(workspace)
    workspace.write("tasks/net/whole/model.py", "")

    ran = workspace.run("model", "verify", "tasks/net", "--agent=expert", "--noleave_out")

    assert ran.code == 3, ran.err
    assert (
        "plain is unchanged: no file 'tasks/net/plain/solutions/expert/plain.py' in the workspace: "
        "write a kernel there, or name another agent with --agent"
    ) in ran.out
    assert "--solution" not in ran.out


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"cpu"', '"quux"', "unknown platform 'quux'"),
        (
            "[\n    1\n",
            "[1, 2\n",
            "part 'plain' has 2 numbers of calls, but its task has 1 configs",
        ),
    ],
)
def test_a_model_that_does_not_fit_its_tasks_is_one_error(
    workspace: CliWorkspace, before: str, after: str, said: str
) -> None:
    write(workspace)
    workspace.write("tasks/net/whole/model.py", "")
    file = workspace.root / "tasks/net/model.json"
    assert before in file.read_text()
    file.write_text(file.read_text().replace(before, after, 1))

    ran = workspace.run("model", "verify", "tasks/net")

    assert ran.code == 1
    assert f"error: tasks/net/model.json: {said}" in ran.err
