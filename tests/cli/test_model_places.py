"""Where ``kabuild model verify`` finds no model that was extracted."""

from __future__ import annotations

import pytest

from tests.testkit.cli import CliWorkspace


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
            '{"schema": 1, "name": "m", "parts": {"x;y": {}}, "platform": "cpu"}',
            1,
            "not a Python identifier",
        ),
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
