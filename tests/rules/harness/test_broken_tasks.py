"""A mistake of the task is told as the task's, with its place, however its code ends."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from judging_doubles import REFERENCE, Doubles, softmax, write_spec

from correctness import gate as correctness  # isort: skip
from base.spec import parse_spec  # isort: skip
from truth.task_code import TaskCode, TaskFault  # isort: skip

TOOLS = Path(__file__).parents[3] / "rules/harness/tools"
RESULT = '{"y": torch.softmax(x * scale, dim=-1)}'
DRAWN = 'return {"x": x.to(config["dtype"])}'
JUDGE = """
import ctypes, os, resource, signal, sys
sys.path.insert(0, sys.argv[1])
from base.task_watch import fork_judge, running
if (ended := fork_judge()) is not None:
    print(*ended, flush=True)
    sys.exit(9)
print("judging", flush=True)
with running("task/reference.py:7: reference()"):
    {inside}
{outside}
"""


def judged(tmp_path: Path, reference: str) -> str:
    spec = parse_spec(write_spec(tmp_path, reference))
    return correctness.run(spec, Doubles({"candidate": softmax, "baseline": softmax})).outcome


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ('{"y": torch.softmax(x * scale, dim=-1) * torch.nan}', "NaN in 'y' (8x64)"),
        ('{"y": torch.softmax(x * scale, dim=-1).masked_fill(x > 1, torch.nan)}', "NaN in 'y'"),
        ('{"y": torch.softmax(x * scale, dim=-1) + torch.inf}', "no finite value in 'y' (8x64)"),
    ],
)
def test_a_reference_without_an_answer_blames_no_candidate(tmp_path, result, words):
    reference = REFERENCE.replace(RESULT, result)
    line = 1 + reference.splitlines().index("def reference(x, scale, **_):")

    with pytest.raises(TaskFault, match=rf":{line}: reference\(\) returned {re.escape(words)}"):
        judged(tmp_path, reference)


def test_infinities_and_values_that_the_task_draws_are_answers(tmp_path):
    """A task may draw NaN, and say what becomes of it; and an infinity may be right."""
    odd = REFERENCE.replace(DRAWN, f"x[0, 0] = torch.nan; {DRAWN}")
    assert judged(tmp_path, odd) == "PASS"
    checked = REFERENCE.replace(RESULT, '{"y": x * torch.nan}') + "\n\ndef check(*_):\n    pass\n"
    assert judged(tmp_path, checked) == "PASS"
    masked = "torch.softmax(x * scale, dim=-1).masked_fill(x > 1, torch.inf)"
    assert judged(tmp_path, REFERENCE.replace(RESULT, f'{{"y": {masked}}}')) == "FAIL"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("os._exit(3)", ":5: inputs() ended its process (exit code 3)"),
        ("os._exit(0)", ":5: inputs() ended its process (exit code 0)"),
        ("os.abort()", ":5: inputs() ended its process (SIGABRT)"),
        ("raise GeneratorExit", ":5: inputs() raised GeneratorExit"),
        ("raise KeyboardInterrupt", ":5: inputs() raised KeyboardInterrupt"),
        ("raise MemoryError", ":5: inputs() raised MemoryError"),
        ("return bytes(1 << 62)", ":5: inputs() raised MemoryError"),
    ],
)
def test_code_that_ends_programs_is_told_with_its_line(tmp_path, monkeypatch, body, words):
    monkeypatch.chdir(tmp_path)
    Path("reference.py").write_text(f"import os\n\n\ndef inputs():\n    {body}\n")
    code = TaskCode("reference.py")

    with pytest.raises(TaskFault) as caught:
        code.call(code.function("inputs"))

    assert str(caught.value).startswith(f"reference.py{words}")


def test_memory_that_a_library_lacks_is_the_machines(tmp_path):
    """The task's own lines ask for nothing unusual there."""
    library = tmp_path / "library.py"
    library.write_text("def work():\n    raise MemoryError\n")
    (tmp_path / "reference.py").write_text(
        f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport library\n\n\n"
        "def inputs():\n    return library.work()\n"
    )
    code = TaskCode(str(tmp_path / "reference.py"))

    with pytest.raises(MemoryError):
        code.call(code.function("inputs"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n\n\ndef refrence(**_):\n    pass\n", ":4: no function 'reference'; did"),
        ("x = 1\n\nreference = 7\n", ":3: no function 'reference'"),
        ("import os\nx = 1\n", ":2: no function 'reference'"),
        ("", ":1: no function 'reference'"),
    ],
)
def test_a_missing_function_is_told_with_a_line(tmp_path, monkeypatch, text, words):
    monkeypatch.chdir(tmp_path)
    Path("reference.py").write_text(text)

    with pytest.raises(TaskFault) as caught:
        TaskCode("reference.py").function("reference")

    assert str(caught.value).startswith(f"reference.py{words}")


@pytest.mark.parametrize(
    ("inside", "outside", "code", "said"),
    [
        ("pass", "sys.exit(5)", 9, "5"),
        ("pass", "os._exit(0)", 9, "0"),
        ("ctypes.CDLL(None)._exit(3)", "", 9, "3 task/reference.py:7: reference() ended its pro"),
        ("ctypes.string_at(0)", "", 9, "-11 task/reference.py:7: reference() ended its process (S"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "", -signal.SIGKILL, "judging"),
        ("pass", "os.kill(os.getpid(), signal.SIGXCPU)", -signal.SIGXCPU, "judging"),
        ("pass", "ctypes.string_at(0)", -signal.SIGSEGV, "judging"),
    ],
)
def test_whose_code_ended_the_process_is_known(inside, outside, code, said):
    """The end within the task's code is the task's; any other is passed on as it was."""
    script = JUDGE.format(inside=inside, outside=outside)
    done = subprocess.run(
        [sys.executable, "-c", script, str(TOOLS)], capture_output=True, text=True, check=False
    )

    assert done.returncode == code, done.stderr
    assert done.stdout.splitlines()[-1].startswith(said)
