"""A mistake in reference.py is the task's, told with its line; and what never ends is ended."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from truth.task_code import TaskCode, TaskFault

HEAD = "def inputs(config, generator):\n"
SLEEP = "__import__('time').sleep(60)"


def load_and_call(path: str) -> None:
    code = TaskCode(path, seconds=0.2)
    code.call(code.function("inputs"), {}, None)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("def f(:\n    pass\n", ":1", "the import raised SyntaxError"),
        ("x = 1\nimport no_such_module\n", ":2", "ModuleNotFoundError: No module named"),
        ("import sys\nsys.exit(0)\n", ":2", "the import raised SystemExit: 0"),
        ("x = 1\n", "", "no function 'inputs'"),
        ("inputs = 7\n", "", "no function 'inputs'"),
        (f"{HEAD}    return 1 // 0\n", ":2", "inputs() raised ZeroDivisionError"),
        (f"{HEAD}    return deep()\n\ndef deep():\n    raise KeyError('q')\n", ":5", "KeyError"),
        (f"{HEAD}    return inputs(config, generator)\n", ":2", "RecursionError"),
        (f"{HEAD}    raise SystemExit\n", ":2", "inputs() raised SystemExit"),
        (f"{HEAD}    while True:\n        pass\n", ":", "inputs() did not end within 0.2 s"),
        (
            f"{HEAD}    try:\n        {SLEEP}\n    except Exception:\n        pass\n",
            ":3",
            "inputs() did not end within 0.2 s",
        ),
        ("while True:\n    pass\n", ":", "the import did not end within 0.2 s"),
    ],
)
def test_what_fails_is_told_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, line: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "task").mkdir()
    (tmp_path / "task/reference.py").write_text(text)
    began = time.monotonic()

    with pytest.raises(TaskFault) as caught:
        load_and_call("task/reference.py")

    assert str(caught.value).startswith(f"task/reference.py{line}")
    assert words in str(caught.value)
    assert time.monotonic() - began < 50  # and did not sleep


def test_what_is_right_is_called(tmp_path: Path) -> None:
    file = tmp_path / "reference.py"
    file.write_text(f"{HEAD}    return config + generator\n")
    code = TaskCode(str(file), seconds=5.0)

    assert code.call(code.function("inputs"), 3, 4) == 7
    assert code.find("check") is None
