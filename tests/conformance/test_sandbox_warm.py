"""A script in a warm process must do what it does in a process of its own: the same bytes."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kabuild.sandbox import Completed, Spawner, probe
from tests.kabuild.sandbox.boxes import ENV, PYTHON_TREES, Box

needs_namespaces = pytest.mark.skipif(probe() is not None, reason=f"no namespaces: {probe()}")
STATE = """
import decimal, json, os, signal, sys, threading

def state():
    return {
        "argv": sys.argv, "orig_argv": sys.orig_argv, "path0": sys.path[0],
        "path": sys.path[1:], "executable": sys.executable, "prefix": sys.prefix,
        "name": __name__, "file": __file__, "package": __package__, "spec": __spec__,
        "doc": __doc__, "main": sys.modules["__main__"].__dict__ is globals(),
        "cached": __cached__, "loader": type(__loader__).__name__,
        "globals": sorted(globals()), "env": dict(os.environ), "cwd": os.getcwd(),
        "threads": threading.active_count(), "bytecode": sys.dont_write_bytecode,
        "signals": [str(signal.getsignal(s)) for s in (2, 13, 15, 17, 25)],
        "encodings": [sys.stdout.encoding, sys.stderr.errors, sys.getfilesystemencoding()],
        "hash": hash("text"), "uid": os.getuid(), "fds": len(os.listdir("/proc/self/fd")),
        "private": [m for m in sys.modules if "sandbox" in m and not m.startswith("_kabuild_")],
    }

print(json.dumps(state(), indent=1, default=str))
"""
ENDINGS = {
    "returns": "print('done')",
    "raises": "def inner():\n    return 1 / 0\n\ninner()",
    "chains": "try:\n    {}['x']\nexcept KeyError as e:\n    raise ValueError('bad') from e",
    "does not parse": "def broken(:\n",
    "exits with a number": "raise SystemExit(7)",
    "exits with a large number": "raise SystemExit(256 + 3)",
    "exits with a text": "import sys; sys.exit('what was wrong')",
    "exits with nothing": "import sys; sys.exit()",
    "hurries": "import os; os._exit(9)",
    "is killed": "import os; os.kill(os.getpid(), 9)",
    "aborts": "import os; os.abort()",
    "leaves a thread": (
        "import threading\nthreading.Thread(target=lambda: print('in a thread')).start()"
    ),
    "leaves a callback": "import atexit\natexit.register(print, 'at exit')\nraise SystemExit(4)",
    "leaves a finalizer": (
        "import weakref\nclass C: pass\nc = C()\nweakref.finalize(c, print, 'finalized')"
    ),
    "reads stdin": "input()",
    "writes without a newline": "import sys; sys.stdout.write('x'); sys.stderr.write('y')",
    "imports its neighbour": "import protocol, supervisor\nprint(protocol.NAME, supervisor.NAME)",
    "pickles": (
        "import pickle\nclass C: pass\nprint(type(pickle.loads(pickle.dumps(C()))).__module__)"
    ),
    "inspects itself": "import inspect\ndef f(): return 1\nprint(inspect.getsource(f))",
    "forks": "import os\npid = os.fork()\nprint(bool(pid))\npid and os.waitpid(pid, 0)",
    "starts a program": "import subprocess\nsubprocess.run(['/bin/echo', 'hello'])",
}


@pytest.fixture(scope="module")
def spawner() -> Iterator[Spawner]:
    with Spawner() as spawner:
        yield spawner


@pytest.fixture(params=[pytest.param(True, marks=needs_namespaces), False], ids=["box", "bare"])
def box(request: pytest.FixtureRequest, spawner: Spawner, tmp_path: Path) -> Box:
    box = Box(spawner, tmp_path, hermetic=request.param)
    (box.inputs / "tools").mkdir(parents=True)
    return box


def outcome(done: Completed, box: Box) -> tuple[object, ...]:
    """Everything but times and sizes; without the directory, whose name is random when bare."""
    kept = [(done.exit_code, done.signal, done.limit), done.outputs]
    texts = [done.stdout.decode(), done.stderr.decode()]
    if not box.hermetic:
        texts = [re.sub(r"/[^\s'\"]*?/kabuild-exec-[^/\s'\"]+", "/exec", text) for text in texts]
    return (*kept, *texts)


@pytest.mark.parametrize("ending", ENDINGS)
def test_warm_and_cold_end_alike(box: Box, ending: str) -> None:
    tools = box.inputs / "tools"
    (tools / "script.py").write_text(ENDINGS[ending] + "\n")
    (tools / "protocol.py").write_text("NAME = 'protocol of the action'\n")
    (tools / "supervisor.py").write_text("NAME = 'supervisor of the action'\n")
    cold = box.run(sys.executable, "tools/script.py", "1")
    warm = box.run(sys.executable, "tools/script.py", "1", preload=("decimal", "json"))

    assert outcome(warm, box) == outcome(cold, box)


def test_warm_and_cold_see_the_same(box: Box) -> None:
    (box.inputs / "tools" / "state.py").write_text(STATE)
    env = {**ENV, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    command = (sys.executable, "tools/state.py", "--flag", "ä")
    cold = box.run(*command, env=env)
    warm = box.run(*command, env=env, preload=("decimal",))

    assert cold.exit_code == 0, cold.stderr
    assert outcome(warm, box) == outcome(cold, box)


def test_a_warm_script_finds_its_modules_loaded(box: Box) -> None:
    (box.inputs / "script.py").write_text("import sys\nprint('decimal' in sys.modules)\n")
    cold = box.run(sys.executable, "script.py")
    warm = box.run(sys.executable, "script.py", preload=("decimal",))

    assert (cold.stdout, warm.stdout) == (b"False\n", b"True\n")


def test_a_warm_script_leaves_no_trace_for_the_next(box: Box) -> None:
    (box.inputs / "script.py").write_text(
        "import decimal, os, sys\n"
        "print(hasattr(decimal, 'mark'), os.environ.get('MARK'), 'mark' in sys.path)\n"
        "decimal.mark = 1; os.environ['MARK'] = '1'; sys.path.append('mark')\n"
    )
    runs = [box.run(sys.executable, "script.py", preload=("decimal",)) for _ in range(2)]

    assert [done.stdout for done in runs] == [b"False None False\n"] * 2


def test_a_module_that_does_not_exist_is_no_error(box: Box) -> None:
    (box.inputs / "script.py").write_text("print('ran')\n")
    done = box.run(sys.executable, "script.py", preload=("no_such_module_at_all",))

    assert (done.stdout, done.exit_code) == (b"ran\n", 0)


@pytest.mark.parametrize(
    ("argv", "env"),
    [
        ((sys.executable, "-I", "script.py"), ENV),
        ((sys.executable, "script.py"), {**ENV, "PYTHONPATH": "tools"}),
        (("/bin/sh", "-c", f"{sys.executable} script.py"), ENV),
    ],
)
def test_what_only_a_fresh_interpreter_can_do_runs_cold(
    box: Box, argv: tuple[str, ...], env: dict[str, str]
) -> None:
    (box.inputs / "script.py").write_text("import sys\nprint('decimal' in sys.modules)\n")
    done = box.run(*argv, env=env, preload=("decimal",))

    assert done.stdout == b"False\n", done.stderr


NEIGHBOURS = {
    "returns": "def call():\n    return 'called'\n",
    "raises": "def call():\n\n    raise ValueError('no')\n",
    "raises as it is imported": "def call():\n    pass\n\nraise ValueError('no')\n",
    "imports what is not there": "import no_such_module\n",
    "does not parse": "def call(:\n",
    "warns": "TEXT = '\\d'\ndef call():\n    import warnings; warnings.warn('careful')\n",
    "shows itself": "import inspect\ndef call():\n    return inspect.getsource(call)\n",
    "looks for its code": "def call():\n    return __file__, __cached__, __spec__.origin\n",
    "is imported again": (
        "import importlib\ndef call():\n"
        "    import pack.near\n    return importlib.reload(pack.near).call\n"
    ),
}
CALLING = "from pack.near import call\nprint(str(call()).split(' at 0x')[0])\n"


def with_neighbour(box: Box, near: str, **rest: Any) -> Completed:
    """A script that calls its neighbour; both are compiled by the zygote, where there is one."""
    files = {"script.py": CALLING, "pack/__init__.py": "", "pack/near.py": near}
    for name, text in files.items():
        path = box.inputs / "tools" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    digests = {f"tools/{name}": sha256(text) for name, text in files.items()}
    return box.run(sys.executable, "tools/script.py", **{"sources": digests, **rest})


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("near", NEIGHBOURS)
def test_compiled_and_fresh_modules_do_the_same(box: Box, near: str) -> None:
    """Down to the paths and lines of tracebacks."""
    cold = with_neighbour(box, NEIGHBOURS[near])
    warm = [with_neighbour(box, NEIGHBOURS[near], preload=("decimal",)) for _ in range(2)]

    assert [outcome(done, box) for done in warm] == [outcome(cold, box)] * 2


@needs_namespaces
def test_an_altered_module_is_used(spawner: Spawner, tmp_path: Path) -> None:
    """Whatever digest was given: what counts is the content that the script sees."""
    box = Box(spawner, tmp_path)
    (box.inputs / "tools").mkdir(parents=True)
    texts = [NEIGHBOURS["returns"].replace("called", word) for word in ("one", "two", "one")]
    honest = [with_neighbour(box, text, preload=("decimal",)).stdout for text in texts]
    stale = {"tools/pack/near.py": sha256(texts[0])}
    blind = [
        with_neighbour(box, text, preload=("decimal",), sources=stale).stdout for text in texts
    ]

    assert honest == blind == [b"one\n", b"two\n", b"one\n"]


POISON = """
import os, signal, socket, sys

def call():
    frame, reached = sys._getframe(), []
    while frame := frame.f_back:
        reached += [value for value in frame.f_locals.values() if hasattr(value, "import_from")]
    evil = compile("def call(): return 'evil'", "/exec/tools/pack/near.py", "exec")
    for files in reached:
        for path, (digest, source, code) in [*files._files.items()]:
            files._files[path] = digest, source, evil
        type(files).code = lambda *arguments: evil
    sys.path_hooks.clear()
    for fd in range(3, 64):
        try:
            socket.socket(fileno=fd).send(b"evil")
        except OSError:
            pass
    for pid in (os.getppid(), 1):
        try:
            os.kill(pid, signal.SIGTERM)
        except OSError:
            pass
    return f"reached it: {reached[0]._files['/exec/tools/pack/near.py'][2] is evil}"
"""


@needs_namespaces
def test_a_script_cannot_change_what_others_get(spawner: Spawner, tmp_path: Path) -> None:
    """It may reach its own copy of what was compiled, and that ends with it."""
    boxes = [Box(spawner, tmp_path / name) for name in ("honest", "hostile", "later")]
    for box in boxes:
        (box.inputs / "tools").mkdir(parents=True)
    texts = (NEIGHBOURS["returns"], POISON, NEIGHBOURS["returns"])
    digests = {"tools/pack/near.py": sha256(NEIGHBOURS["returns"])}
    ran = [
        with_neighbour(box, text, preload=("decimal",), sources=digests)
        for box, text in zip(boxes, texts, strict=True)
    ]

    said = [done.stdout + done.stderr for done in ran]
    assert said == [b"called\n", b"reached it: True\n", b"called\n"]


@needs_namespaces
def test_torch_computes_the_same_warm_and_cold(spawner: Spawner, tmp_path: Path) -> None:
    box = Box(spawner, tmp_path)
    source = """
        import torch
        torch.manual_seed(1)
        a = torch.randn(256, 256)
        numbers = (a @ a).softmax(0).numpy().tobytes()
        open("out/numbers", "wb").write(numbers)
        print(torch.get_num_threads(), torch.initial_seed())
    """
    seen = []
    for preload in ((), ("torch",)):
        done = box.python(source, outputs=("out/numbers",), mounts=PYTHON_TREES, preload=preload)
        assert done.ok, done.stderr
        seen.append((done.stdout, (box.collected / "out/numbers").read_bytes()))

    assert seen[0] == seen[1]


@needs_namespaces
def test_a_warm_script_leaves_alone_what_was_imported_before(
    spawner: Spawner, tmp_path: Path
) -> None:
    """What torch has to end at an exit, such as its registered operators, the zygote has."""
    box = Box(spawner, tmp_path)
    source = """
        import torch, weakref
        weakref.finalize(lambda: None, print, "mine")
        print(sum(finalizer.atexit for finalizer in weakref.finalize._registry))
    """
    done = box.python(source, mounts=PYTHON_TREES, preload=("torch",))

    assert done.stdout == b"mine\n0\n", done.stderr
