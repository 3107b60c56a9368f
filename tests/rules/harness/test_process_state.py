"""A task's code leaves the judge's process as it was, or is told what it did to it."""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from truth import keeper, process_state, refused_calls
from truth.task_code import CAREFUL_CALLS, TaskCode, TaskFault

IMPORTS = "import builtins, json, os, signal, sys, threading, time, warnings\nimport torch\n"


def call(tmp_path: Path, body: str, head: str = "") -> Any:
    """Import a reference whose ``inputs`` is ``body``, from line 7 on, and call that."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    path = tmp_path / "reference.py"
    path.write_text(f"{IMPORTS}{head}\n\n\ndef inputs():\n{lines}")
    code = TaskCode(str(path), seconds=20.0)
    return code.call(code.function("inputs"))


@pytest.fixture(autouse=True)
def modules() -> Iterator[dict[str, ModuleType]]:
    """What is imported stays so: PyTorch cannot be imported twice, and other tests need it."""
    before = dict(sys.modules)
    yield before
    sys.modules.update(before)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("os.chdir('/')", "left the working directory at /"),
        ("torch.set_default_dtype(torch.float16)", "left PyTorch's default dtype at float16"),
        ("torch.set_default_device('meta')", "left PyTorch's default device at meta"),
        ("torch.device('meta').__enter__()", "left PyTorch's default device at meta"),
        ("torch._C._functorch._grad_increment_nesting()", "left a transform of torch.func on"),
        ("builtins.len = None", "replaced builtins.len"),
        ("del builtins.isinstance", "replaced builtins.isinstance"),
        ("builtins.type = builtins.getattr = builtins.str = None", "replaced builtins."),
        ("torch.isfinite = torch.softmax", "replaced torch.isfinite"),
        ("torch.Tensor.double = torch.Tensor.float", "replaced torch.Tensor.double"),
        ("torch.Tensor.__add__ = None", "replaced torch.Tensor.__add__"),
        ("os.read = None", "replaced os.read"),
        ("os.getcwd = os.path.join = None", "replaced os."),
        ("time.monotonic = float", "replaced time.monotonic"),
        ("json.dumps = None", "replaced json.dumps"),
        ("sys.setrecursionlimit = None", "replaced sys.setrecursionlimit"),
        ("sys.modules['torch'] = None", "replaced sys.modules['torch']"),
        ("sys.modules.clear()", "replaced sys.modules["),
        ("import contextlib; contextlib.suppress = None", "replaced contextlib.suppress"),
        ("import hashlib; del hashlib.sha256", "replaced hashlib.sha256"),
        ("import select; select.poll = None", "replaced select.poll"),
        ("json.encoder.JSONEncoder = None", "replaced json.encoder.JSONEncoder"),
    ],
)
def test_what_would_break_the_judge_is_told_and_mended(
    tmp_path: Path, modules: dict[str, ModuleType], body: str, words: str
) -> None:
    place = Path.cwd()

    with pytest.raises(TaskFault) as caught:
        call(tmp_path, body)

    assert str(caught.value).startswith(f"{tmp_path}/reference.py:6: inputs() {words}")
    assert Path.cwd() == place
    assert sys.modules["torch"] is modules["torch"]
    assert (torch.get_default_dtype(), str(torch.get_default_device())) == (torch.float32, "cpu")
    assert len([int]) == 1
    assert isinstance(torch.ones(2).double() + 1.0, torch.Tensor)


def test_a_task_may_replace_its_own_modules(tmp_path: Path) -> None:
    """As importers do, whose originals all have a module ``utils``."""
    assert call(tmp_path, "return sys.modules['of_a_task']", "sys.modules['of_a_task'] = json")
    assert call(tmp_path, "sys.modules['of_a_task'] = os; return 3") == 3
    del sys.modules["of_a_task"]


def test_so_is_what_an_import_does(tmp_path: Path) -> None:
    with pytest.raises(TaskFault, match=r":1: the import replaced builtins\.len: leave what"):
        call(tmp_path, "return 1", head="builtins.len = None")


def test_what_pytorch_wraps_of_its_own_is_no_ones_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As its compiler does when it is loaded."""
    monkeypatch.setattr(torch, "manual_seed", torch.manual_seed)
    wrap = "def manual_seed(seed): pass\nmanual_seed.__module__ = 'torch.random'"

    assert call(tmp_path, f"{wrap}\ntorch.manual_seed = manual_seed\nreturn 3") == 3


@pytest.mark.parametrize(
    "body",
    [
        "here = os.getcwd(); os.chdir('/'); os.chdir(here)",
        "torch.set_default_dtype(torch.float64); torch.set_default_dtype(torch.float32)",
        "with torch.device('meta'): torch.ones(2)",
        "with torch.inference_mode(): torch.ones(2)",
        "torch.func.grad(torch.sin)(torch.ones(()))",
        "torch.Tensor.of_the_task = 1; torch.of_the_task = 1; builtins.of_the_task = 1",
        "sys.modules['of_the_task'] = sys; del sys.modules['of_the_task']",
        "sys.modules['of_the_task'] = json; sys.path.insert(0, '/nowhere')",
        "threading.Thread(target=time.sleep, args=(0.01,)).start()",
        "print('x' * 1000)",
        "import random; random.seed(3); random.of_the_task = 1",
        "import tempfile; tempfile.tempdir = None; tempfile.gettempdir()",
    ],
)
def test_what_does_no_harm_is_allowed(tmp_path: Path, body: str) -> None:
    assert call(tmp_path, f"{body}\nreturn 3") == 3


@pytest.mark.parametrize(
    ("body", "state"),
    [
        ("torch.set_num_threads(3)", torch.get_num_threads),
        ("torch.set_grad_enabled(False)", torch.is_grad_enabled),
        (
            "torch._C._set_deterministic_algorithms(True)",
            torch.are_deterministic_algorithms_enabled,
        ),
        ("torch.set_flush_denormal(True)", lambda: float(torch.tensor(1e-310).double() * 1) > 0),
        ("sys.setrecursionlimit(200)", sys.getrecursionlimit),
        ("sys.settrace(lambda *_: None)", sys.gettrace),
        ("sys.stdout = sys.stderr = None", lambda: (sys.stdout, sys.stderr)),
        ("sys.path.clear(); sys.meta_path.clear()", lambda: (len(sys.path), len(sys.meta_path))),
        ("sys.path = []", lambda: len(sys.path)),
        ("warnings.simplefilter('error')", lambda: {entry[0] for entry in warnings.filters}),
        ("signal.signal(17, signal.SIG_IGN)", lambda: signal.getsignal(signal.SIGCHLD)),
        ("signal.pthread_sigmask(0, [10])", lambda: signal.pthread_sigmask(0, [])),
        ("os.umask(0o777)", lambda: (os.umask(0o22), os.umask(0o22))[1]),
        ("import gc; gc.disable()", gc.isenabled),
        ("sys.excepthook = None", lambda: sys.excepthook),
        ("signal.setitimer(signal.ITIMER_VIRTUAL, 99)", lambda: signal.getitimer(1)),
        ("signal.setitimer(signal.ITIMER_PROF, 99)", lambda: signal.getitimer(2)),
    ],
)
@pytest.mark.filterwarnings("default")
def test_settings_are_put_back_without_a_word(
    tmp_path: Path, body: str, state: Callable[[], Any]
) -> None:
    before = state()

    assert call(tmp_path, f"{body}\nreturn 3") == 3

    assert state() == before


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("os.fork()", "forks the judge's process"),
        ("os.execv('/bin/true', ['true'])", "replaces the judge's process"),
        ("os.kill(os.getpid(), 15)", "sends a signal to the judge's process"),
        ("os.kill(os.getpid(), 9)", "sends a signal to the judge's process"),
        ("os.kill(os.getppid(), 9)", "sends a signal to the judge's process"),
        ("os.kill(-1, 9)", "sends a signal to the judge's process"),
        ("os.killpg(0, 15)", "sends a signal to the judge's process"),
        ("signal.pthread_kill(threading.get_ident(), 15)", "sends a signal to the judge's"),
        ("import resource; resource.setrlimit(7, (9, 9))", "changes the limits"),
        ("import resource; resource.prlimit(0, 7, (9, 9))", "changes the limits"),
        ("sys.addaudithook(print)", "adds an audit hook"),
        ("try:\n    os.fork()\nexcept Exception:\n    pass", "forks the judge's process"),
    ],
)
def test_a_call_that_would_end_the_judge_is_refused_with_its_line(
    tmp_path: Path, body: str, words: str
) -> None:
    line = 7 + body.startswith("try")

    with pytest.raises(TaskFault) as caught:
        call(tmp_path, body)

    assert str(caught.value).startswith(f"{tmp_path}/reference.py:{line}: inputs() {words}")


@pytest.mark.parametrize(
    "body",
    [
        "import subprocess; subprocess.run(['true'], check=True)",
        "import subprocess; c = subprocess.Popen(['sleep', '9']); c.kill(); c.wait()",
        "os.kill(os.getpid(), 0)",
        "import resource; resource.prlimit(0, 7)",
    ],
)
def test_its_own_processes_are_the_tasks_own(tmp_path: Path, body: str) -> None:
    assert call(tmp_path, f"{body}\nreturn 3") == 3


def test_the_judge_itself_may_do_all_that(tmp_path: Path) -> None:
    call(tmp_path, "pass")
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


@pytest.fixture
def vital() -> Iterator[int]:
    """A file that the judge needs."""
    ours, its = os.pipe()
    process_state._VITAL[ours] = process_state._file(ours) or (0, 0)
    yield ours
    process_state._VITAL.clear()
    os.close(its)


def test_a_file_that_is_closed_or_replaced_is_told(tmp_path: Path, vital: int) -> None:
    with pytest.raises(TaskFault, match=rf":6: inputs\(\) closed file descriptor {vital} of the"):
        call(tmp_path, f"os.close({vital})")


def test_files_of_its_own_may_be_closed(tmp_path: Path, vital: int) -> None:
    assert call(tmp_path, "os.close(os.open('/dev/null', 0))\nreturn 3") == 3
    os.close(vital)


@pytest.fixture
def held() -> Iterator[None]:
    """As in a gate: what is open now is the judge's, and memory is limited."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    process_state.hold()
    refused_calls.hold()
    yield
    process_state._VITAL.clear()
    process_state._LIMITS.clear()
    resource.setrlimit(resource.RLIMIT_DATA, before)


@pytest.mark.usefixtures("held")
def test_what_is_open_now_is_held(tmp_path: Path) -> None:
    assert {0, 1, 2} <= process_state._VITAL.keys()
    assert call(tmp_path, "return len(bytes(1 << 20))") == 1 << 20


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return bytearray(9 << 30)", ":7: inputs() raised MemoryError"),
        ("return torch.empty(9 << 30, dtype=torch.uint8)", ":7: inputs() raised RuntimeError"),
        ("sys.kept = torch.empty(7 << 30, dtype=torch.uint8)", ":6: inputs() left 7 GiB of memory"),
    ],
)
def test_memory_that_the_judge_needs_is_told(tmp_path: Path, body: str, words: str) -> None:
    with pytest.raises(TaskFault) as caught:
        call(tmp_path, body)
    vars(sys).pop("kept", None)
    assert words in str(caught.value)


@pytest.mark.usefixtures("held")
def test_files_that_are_left_open_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(process_state._LIMITS, "files", 200)
    body = "sys.kept = [open('/dev/null') for _ in range({})]"
    with pytest.raises(TaskFault, match=r":6: inputs\(\) left 2\d\d files open: close them"):
        call(tmp_path, body.format(199))
    vars(sys).pop("kept").clear()
    call(tmp_path, body.format(9))
    vars(sys).pop("kept").clear()


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TaskCode:
    """A task whose two functions were called as often as is looked at with care."""
    monkeypatch.setattr(keeper, "EVERY_SECONDS", 1e9)
    monkeypatch.setattr(keeper, "_KEEPERS", [])  # those of other tests' tasks
    path = tmp_path / "reference.py"
    path.write_text(
        f"{IMPORTS}\n\ndef inputs(text=''):\n    exec(text)\n\n\ndef reference():\n    pass\n"
    )
    code = TaskCode(str(path), seconds=20.0)
    for name in ("inputs", "reference"):
        for _ in range(CAREFUL_CALLS):
            code.call(code.function(name))
    return code


def test_what_a_later_call_leaves_is_told_at_the_end(called: TaskCode) -> None:
    before = os.getcwd
    called.call(called.function("inputs"), "os.getcwd = None")
    called.call(called.function("reference"))

    said = keeper.last_look()

    assert os.getcwd is before
    assert ":5: inputs() or " in said
    assert said.endswith(":9: reference() replaced os.getcwd: leave what others use as it is")
    assert keeper.last_look() == ""


def test_what_a_later_call_leaves_is_told_after_a_while(
    called: TaskCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = json.dumps
    called.call(called.function("inputs"), "import json; json.dumps = None")
    monkeypatch.setattr(keeper, "EVERY_SECONDS", 0.0)

    with pytest.raises(TaskFault, match=r"inputs\(\) or .*reference\(\) replaced json\.dumps"):
        called.call(called.function("reference"))

    assert json.dumps is before
    called.call(called.function("reference"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("torch.set_default_dtype(torch.float16)", "left PyTorch's default dtype at float16"),
        ("torch.set_default_device('meta')", "left PyTorch's default device at meta"),
        ("torch.device('meta').__enter__()", "left PyTorch's default device at meta"),
        ("os.chdir('/')", "left the working directory at /"),
        ("import builtins; builtins.len = None", "replaced builtins.len"),
    ],
)
def test_what_results_depend_on_is_told_after_any_call(
    called: TaskCode, text: str, words: str
) -> None:
    called.call(called.function("reference"))
    with pytest.raises(TaskFault, match=rf"^[^ ]+:5: inputs\(\) {words}"):
        called.call(called.function("inputs"), text)
    called.call(called.function("inputs"))


def test_threads_and_gradients_are_put_back_after_any_call(called: TaskCode) -> None:
    before = torch.get_num_threads()
    called.call(called.function("inputs"), "torch.set_num_threads(7)")
    called.call(called.function("inputs"), "torch.set_grad_enabled(False)")
    assert torch.get_num_threads() == before
    assert torch.is_grad_enabled()
