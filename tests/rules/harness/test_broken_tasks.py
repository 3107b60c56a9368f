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
from truth.task_code import LateError, TaskCode, TaskFault  # isort: skip

TOOLS = Path(__file__).parents[3] / "rules/harness/tools"
RESULT = '{"y": torch.softmax(x * scale, dim=-1)}'
DRAWN = 'return {"x": x.to(config["dtype"])}'
ODD = """

KEPT = {}


class Own(torch.Tensor):
    pass


class Dict(dict):
    def __iter__(self):
        raise ValueError


class Closed(dict):
    def keys(self):
        raise ValueError

    items = values = get = keys


def freed(x):
    x.untyped_storage().resize_(0)
    return x


class Key:
    def __str__(self):
        raise ValueError
"""
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


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ('{"y": x.to("meta")}', "'y' as a tensor on device meta, which has no values"),
        ('{"y": x.to_sparse()}', "'y' as a tensor of layout sparse_coo: return its to_dense()"),
        ('{"y": torch.nested.nested_tensor([x])}', "'y' as a nested tensor"),
        (
            '{"y": torch.quantize_per_tensor(x.float(), 0.1, 0, torch.qint8)}',
            "'y' as a quantised tensor",
        ),
        ('{"y": x.as_subclass(Own)}', "'y' as Own: return a plain torch.Tensor"),
        ('{"y": x.to(torch.complex64)}', "'y' as complex64, declared float32: return floating-"),
        ('{"y": x.long()}', "'y' as int64, declared float32: return floating-point"),
        ('{"y": x > 0}', "'y' as bool, declared float32: return floating-point"),
        ('{"y": x.half()}', "'y' as float16, declared float32: return what doubles give"),
        ('{"y": [x, x[0]]}', "'y' as a list of tensors of several shapes"),
        ('{"y": None}', "'y' as NoneType, not a tensor"),
        ("{7: x, Key(): x}", "[Key, int], declared ['y']"),
        (
            '{f"y{n}": x for n in range(99)}',
            "['y0', 'y1', 'y2', 'y3', 'y4', 'y5', 'y6', 'y7', ",
        ),
        ('{"y": x * torch.rand(1)}', "'y' twice for the same inputs of f32"),
        ('{"y": x.data.untyped_storage()}', "'y' as UntypedStorage, not a tensor"),
        ('{"y": freed(x + 1)}', "'y' as a tensor whose memory was freed or is too small"),
    ],
)
def test_results_that_are_no_plain_tensors_are_the_tasks_mistake(tmp_path, result, words):
    reference = REFERENCE.replace(RESULT, result) + ODD
    line = 1 + reference.splitlines().index("def reference(x, scale, **_):")

    with pytest.raises(TaskFault, match=rf":{line}: reference\(\) returned {re.escape(words)}"):
        judged(tmp_path, reference)


@pytest.mark.parametrize(
    "result",
    [
        '{"y": torch.nn.Parameter(torch.softmax(x * scale, dim=-1))}',
        '{"y": torch.softmax(x * scale, dim=-1).T.contiguous().T}',
        '{"y": list(torch.softmax(x * scale, dim=-1))}',
        "Dict(y=torch.softmax(x * scale, dim=-1))",
        "Closed(y=torch.softmax(x * scale, dim=-1))",
        '{"y": torch.softmax(x.repeat(2, 1) * scale, dim=-1)[x.shape[0] :]}',
        '{"y": KEPT.setdefault(x.shape, x.clone()).copy_(torch.softmax(x * scale, dim=-1))}',
        '{"y": torch.softmax(x.mul_(scale), dim=-1)}',
    ],
)
def test_results_in_another_form_are_right(tmp_path, result):
    """Strides, lists, memory that the task uses again, and changes to its own copies."""
    assert judged(tmp_path, REFERENCE.replace(RESULT, result) + ODD) == "PASS"


def test_inputs_of_any_kind_of_dict_are_right(tmp_path):
    drawn = DRAWN.replace("{", "Closed(**{") + ")"
    assert judged(tmp_path, REFERENCE.replace(DRAWN, drawn) + ODD) == "PASS"


def test_inputs_in_memory_that_is_used_again_are_right(tmp_path):
    reused = "x = KEPT.setdefault(x.shape, x).copy_(x); "
    assert judged(tmp_path, REFERENCE.replace(DRAWN, reused + DRAWN) + ODD) == "PASS"


RAISING = b"""
class E(Exception):
    def __str__(self):
        raise OSError
def inputs():
    raise E
"""
DECORATED = b"import torch\n\n@torch.no_grad()\ndef inputs(a):\n    pass\n"
CONTROLS = b"def inputs():\n    raise OSError('a\\0b\\x1b[31m\\n')\n"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (b"x = 1\0\n", ":1: the import raised SyntaxError: source code string cannot contain"),
        (b"# -*- coding: klingon -*-\n", ":1: the import raised SyntaxError: unknown encoding"),
        ("x = 1\n".encode("utf-16"), ":1: the import raised SyntaxError"),
        (b"def inputs(a, b):\n    pass\n", ":1: inputs() raised TypeError: inputs() missing 2"),
        (b"import functools\ninputs = functools.partial(int, 'x')\n", ":2: inputs() raised Value"),
        (DECORATED, ":3: inputs() raised TypeError"),
        (RAISING, ":6: inputs() raised E, whose text raised OSError"),
        (b"def inputs():\n    raise OSError('x' * 9999999)\n", ":2: inputs() raised OSError: xxx"),
        (CONTROLS, ":2: inputs() raised OSError: a b [31m"),
    ],
)
def test_a_source_that_cannot_be_called_is_told_with_a_line(tmp_path, monkeypatch, source, words):
    monkeypatch.chdir(tmp_path)
    Path("reference.py").write_bytes(source)

    def call():
        code = TaskCode("reference.py")
        return code.call(code.function("inputs"))

    with pytest.raises(TaskFault) as caught:
        call()

    assert str(caught.value).startswith(f"reference.py{words}")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1100


@pytest.mark.parametrize("end", ["while True: pass", "import time; time.sleep(99)"])
def test_a_check_that_does_not_end_is_the_tasks_mistake(tmp_path, end):
    (tmp_path / "reference.py").write_text(f"def check(outputs):\n    {end}\n")
    code = TaskCode(str(tmp_path / "reference.py"), seconds=0.1)

    with pytest.raises(LateError) as caught:
        code.attempt(code.function("check"), {})
    assert code.told(caught.value) == "it did not end within 0.1 s"
    with pytest.raises(TaskFault, match=r":2: check\(\) did not end within 0.1 s"):
        code.call(code.function("check"), {})


def test_a_check_may_stumble_over_a_candidates_outputs(tmp_path):
    (tmp_path / "reference.py").write_text("def check(outputs):\n    return 1 / outputs\n")
    code = TaskCode(str(tmp_path / "reference.py"))

    with pytest.raises(ZeroDivisionError):
        code.attempt(code.function("check"), 0)
    assert code.attempt(code.function("check"), 2) == 0.5


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
        (
            "os.kill(os.getpid(), signal.SIGTERM)",
            "",
            9,
            "-15 task/reference.py:7: reference()",
        ),
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


WATCHED = """
import os, sys, threading, time
sys.path.insert(0, sys.argv[1])
from base.task_watch import blame, end_judge, fork_judge, running
if (ended := fork_judge(0.1)) is not None:
    print(*ended, flush=True)
    sys.exit(9)
def work():
    {work}
    return 5
end_judge(work)
"""


@pytest.mark.parametrize(
    ("work", "said"),
    [
        ("pass", "5"),
        ("blame('task/reference.py:7: it is wrong')", "5 task/reference.py:7: it is wrong"),
        ("blame('a:7: it is wrong'); os.closerange(0, 99); os.abort()", "-6 a:7: it is wrong"),
        ("threading.Thread(target=time.sleep, args=(99,)).start()", "5"),
        ("import atexit; atexit.register(time.sleep, 99)", "5"),
        ("import atexit; atexit.register(os._exit, 7)", "5"),
        ("sys.stdout.close(); sys.stderr.close()", "5"),
        ("blame('a:7: it is wrong'); running('b').__enter__()", "5 a:7: it is wrong"),
        (
            "at = running('a:7: f()', 0.1); at.__enter__(); time.sleep(99)",
            "-9 a:7: f() did not end within 0.1",
        ),
        ("blame('a:7: it is wrong'); time.sleep(99)", "-9 a:7: it is wrong"),
        ("raise SystemExit(4)", "1"),
    ],
)
def test_the_end_is_told_whatever_the_task_left_behind(work, said):
    """Nothing that a thread, a handler or a closed file does keeps it from being told, or long."""
    script = WATCHED.format(work=work)
    done = subprocess.run(
        [sys.executable, "-c", script, str(TOOLS)],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )

    assert done.returncode == 9, done.stderr
    assert done.stdout.splitlines()[-1].startswith(said)


def test_what_is_printed_is_passed_on_up_to_a_length():
    flood = "print('begin'); sys.stderr.write('error'); os.write(1, bytes(5_000_000)); print('end')"
    done = subprocess.run(
        [sys.executable, "-c", WATCHED.format(work=flood), str(TOOLS)],
        capture_output=True,
        check=False,
        timeout=50,
    )

    assert (done.returncode, done.stderr) == (9, b"error")
    assert 1 << 20 <= len(done.stdout) < (1 << 20) + 100
    assert done.stdout.endswith(b"5 \n")
