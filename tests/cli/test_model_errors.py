"""What ``kabuild model`` says of files that it cannot use, by the real program."""

from __future__ import annotations

import pytest

from tests.testkit.cli import CliWorkspace

BUILD = "def build():\n    return torch.nn.Linear(2, 2)\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import torch\ndef build(:\n", "error: syn.py:2: DOES_NOT_LOAD: SyntaxError: invalid"),
        (f"import torch, no_such\n{BUILD}", "toolchains/python, as kabuild's docs/importing.md"),
        ("import sys\nsys.exit(1)\n", "see that it does not call sys.exit()"),
        (f"import torch\n{BUILD}", "a model file has build() and inputs(generator)"),
    ],
)
def test_a_file_that_is_no_model_is_named_with_what_helps(
    kept_workspace: CliWorkspace, text: str, said: str
) -> None:
    kept_workspace.write("syn.py", text)

    ran = kept_workspace.run("model", "profile", "syn.py")

    assert ran.code == 1
    assert said in ran.err
    assert "model.py" not in ran.err
    assert ("a model file has" in ran.err) is ("a model file has" in said)
