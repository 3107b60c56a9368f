"""Python candidates: what passes, and each fault with its name."""

# mypy: allow-untyped-defs, allow-untyped-calls

import sys

import pytest
import torch
from run_support import DOUBLING, QUICK, config, draws, fault_of, is_doubled, module, run_doubling

from base.tensors import poison_mask  # isort: skip
from runners.launcher import Launcher  # isort: skip
from base.program import Argument, CandidateFault, Config, RunnerPolicy, Signature  # isort: skip
from terms.reasons import Reason  # isort: skip

CHEATS = """
import atexit, ctypes, os, signal, socket, sys, threading, time
import torch
import triton
import triton.language as tl

@triton.jit
def doubled(x, y, n):
    at = tl.program_id(0) * 256 + tl.arange(0, 256)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

def honest(x, y, *, n):
    doubled[(triton.cdiv(n, 256),)](x, y, n)

def prints_and_threads(x, y, *, n):
    print("doubling")
    thread = threading.Thread(target=honest, args=(x, y), kwargs={"n": n})
    thread.start()
    thread.join()

def forgets_half(x, y, *, n):
    doubled[(triton.cdiv(n, 256),)](x, y, n // 2)

def changes_its_input(x, y, *, n):
    doubled[(triton.cdiv(n, 256),)](x, x, n)

def writes_past(x, y, *, n):
    torch.as_strided(y, (n + 1,), (1,))[n] = 1  # refused by torch

def writes_in_c(x, y, *, n):
    ctypes.memset(y.data_ptr() + 4 * n, 1, 1)

def raises(x, y, *, n):
    try:
        {}["the cause"]
    except KeyError as error:
        raise RuntimeError("cannot double") from error

def leaves(x, y, *, n):
    sys.exit(0)

def leaves_at_once(x, y, *, n):
    os._exit(0)

def hangs(x, y, *, n):
    while True:
        pass

def crashes(x, y, *, n):
    ctypes.string_at(8)

def forks(x, y, *, n):
    os.fork()

def runs_a_program(x, y, *, n):
    os.system("true")

def opens_a_socket(x, y, *, n):
    socket.create_connection(("127.0.0.1", 80))

def allocates(x, y, *, n):
    kept = []
    while True:
        kept.append(bytearray(1 << 24))

def allocates_tensors(x, y, *, n):
    kept = []
    while True:
        kept.append(torch.ones(1 << 24))

def forges(x, y, *, n):
    socket.socket(fileno=3).send(b"1" * 64)

def patches_the_clock(x, y, *, n):
    for name in ("pyrunner.host", "triton_apart.apart"):
        sys.modules[name].perf_counter_ns = lambda: 1 << 62
    honest(x, y, n=n)

def later(x, y, *, n):
    def work():
        time.sleep(5)
        honest(x, y, n=n)
    threading.Thread(target=work).start()

@triton.jit
def told(y, a, b, c, d, e, f):
    tl.store(y + 0, a)
    tl.store(y + 1, b)
    tl.store(y + 2, c)
    tl.store(y + 3, d)
    tl.store(y + 4, e)
    tl.store(y + 5, f)

def looks_around(x, y, *, n):
    installed = [path for path in sys.path if path.endswith("site-packages")]
    told[(1,)](
        y,
        "SALT" in os.environ,
        len(sys.argv) > 1,
        os.path.exists("/exec/spec.json") or os.path.exists(SECRET),
        any(name.startswith(("truth", "base.seeds")) for name in sys.modules),
        any(os.access(path, os.W_OK) for path in ("/", "/candidate", "/usr", *installed)),
        os.access("/tmp", os.W_OK),
    )

atexit.register(lambda: os.write(2, b"exit handler"))
"""


@pytest.fixture(scope="module")
def launcher():
    """Started as a gate does it: before any module of the judge is imported."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in sys.modules if name.startswith(("truth", "base.seeds"))]:
            patch.delitem(sys.modules, name)
        started = Launcher.start()
    with started:
        yield started


@pytest.fixture
def candidate(tmp_path):
    def make(entry, source=CHEATS, abi="python"):
        return module(tmp_path, source, entry, abi)

    return make


@pytest.mark.parametrize("abi", ["python", "torch"])
def test_a_call_is_repeated(launcher, candidate, abi):
    source = """
import triton
import triton.language as tl

calls = 0

@triton.jit
def times(x, y, n, by, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, by * tl.load(x + at, mask=at < n), mask=at < n)

def counts(x, *into, n):
    global calls
    calls += 1
    if not into:
        return {"y": calls * x}
    times[(1,)](x, into[0], n, calls, triton.next_power_of_2(n))
"""
    (inputs,) = draws(1)
    with launcher.open(candidate("counts", source, abi), DOUBLING) as runner:
        runner.load(config(), 3)
        (outputs,) = runner.repeat(inputs, 3).outputs

    assert torch.equal(outputs["y"], 3 * inputs["x"])


@pytest.mark.parametrize("twin", ["honest", "prints_and_threads"])
def test_benign_twin_passes(launcher, candidate, twin):
    (inputs, batch), _ = run_doubling(launcher, candidate(twin), batches=2)

    assert is_doubled(inputs, batch)
    assert 0 < batch.reported_ns < batch.wall_ns


@pytest.mark.parametrize(
    ("cheat", "reason", "word"),
    [
        ("absent", Reason.MISSING_ENTRY, "no function 'absent'"),
        ("changes_its_input", Reason.INPUT_MUTATED, "'x'"),
        ("writes_past", Reason.EXCEPTION, "out of bounds for storage"),
        ("writes_in_c", Reason.CRASH, "only kernels can read and write it"),
        ("raises", Reason.EXCEPTION, 'in raises: raise RuntimeError("cannot double") from error'),
        ("leaves", Reason.EXCEPTION, "SystemExit"),
        ("leaves_at_once", Reason.CRASH, "exit code 0"),
        ("hangs", Reason.TIMEOUT, "no answer"),
        ("crashes", Reason.CRASH, "SIGSEGV"),
        ("forks", Reason.FORBIDDEN_SYSCALL, ""),
        ("runs_a_program", Reason.FORBIDDEN_SYSCALL, ""),
        ("opens_a_socket", Reason.FORBIDDEN_SYSCALL, ""),
        ("forges", Reason.EXCEPTION, "Bad file descriptor"),
    ],
)
def test_fault_has_its_reason(launcher, candidate, cheat, reason, word):
    fault = fault_of(launcher, candidate(cheat), QUICK if reason is Reason.TIMEOUT else None)

    assert fault.reason is reason, fault.detail
    assert word in fault.detail
    assert fault.rejected == reason.rejects


@pytest.mark.parametrize("cheat", ["allocates", "allocates_tensors"])
def test_memory_has_a_limit(launcher, candidate, cheat):
    fault = fault_of(launcher, candidate(cheat), RunnerPolicy(memory_bytes=256 << 20))

    assert fault.reason is Reason.OUT_OF_MEMORY, fault.detail


def test_traceback_shows_the_candidates_lines_and_no_path(launcher, candidate, tmp_path):
    detail = fault_of(launcher, candidate("raises")).detail

    assert "candidate.py:" in detail
    assert "KeyError: 'the cause'" in detail
    assert "pyrunner" not in detail
    assert "/candidate.py" not in detail
    assert str(tmp_path) not in detail


@pytest.mark.parametrize("source", ["def broken(:\n", "import absent_module\n", "1 / 0\n"])
def test_module_that_does_not_import(launcher, candidate, source):
    fault = fault_of(launcher, candidate("entry", source))

    assert fault.reason is Reason.EXCEPTION
    assert "candidate.py" in fault.detail


def test_unwritten_output_holds_poison(launcher, candidate):
    ((_, batch),) = run_doubling(launcher, candidate("forgets_half"))

    for outputs in batch.outputs:
        assert poison_mask(outputs["y"], "f32").tolist() == [False] * 500 + [True] * 500


def test_work_after_the_return_is_not_seen(launcher, candidate):
    with launcher.open(candidate("later"), DOUBLING) as runner:
        runner.load(config(), 1)
        batch = runner.batch(draws(1))

    assert poison_mask(batch.outputs[0]["y"], "f32").all()


def test_a_patched_clock_reaches_nobody(launcher, candidate):
    """The module is in another process than the clock."""
    (_, first), (_, batch) = run_doubling(launcher, candidate("patches_the_clock"), batches=2)

    assert 0 < first.reported_ns < first.wall_ns
    assert 0 < batch.reported_ns < batch.wall_ns


def test_nothing_of_the_judge_is_in_reach(launcher, candidate, tmp_path, monkeypatch):
    monkeypatch.setenv("SALT", "secret")
    secret = tmp_path / "spec.json"
    secret.write_text("the salt")
    source = CHEATS.replace("SECRET", repr(str(secret)))

    ((_, batch),) = run_doubling(launcher, candidate("looks_around", source))

    assert batch.outputs[0]["y"][:6].tolist() == [0, 0, 0, 0, 0, 1]


TORCH = """
import torch
def reference(x, n, alpha, **_):
    return {"y": alpha * x, "unused": x}
def changing(x, **_):
    return {"y": x.mul_(2)}
def wrong_shape(x, **_):
    return {"y": (2 * x)[:-1]}
def wrong_dtype(x, **_):
    return {"y": (2 * x).double()}
def absent(x, **_):
    return {"z": 2 * x}
def bare(x, **_):
    return 2 * x
def aliased(x, **_):
    return {"y": x}
"""
SCALED = Signature(DOUBLING.inputs, DOUBLING.outputs, (("alpha", 2.0),), ("n",))


@pytest.mark.parametrize("entry", ["reference", "baseline"])
def test_torch_program_returns_its_outputs(launcher, candidate, entry):
    with launcher.open(candidate(entry, TORCH, "torch"), SCALED) as runner:
        runner.load(config(), 4)
        for _ in range(2):
            inputs = draws(3)
            assert is_doubled(inputs, runner.batch(inputs))


def test_baseline_comes_before_reference(launcher, candidate):
    source = TORCH + "def baseline(x, **_):\n    return {'y': 3 * x}\n"
    with launcher.open(candidate("baseline", source, "torch"), SCALED) as runner:
        runner.load(config(), 1)
        inputs = draws(1)
        assert torch.equal(runner.batch(inputs).outputs[0]["y"], 3 * inputs[0]["x"])


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("changing", Reason.INPUT_MUTATED),
        ("wrong_shape", Reason.WRONG_SHAPE),
        ("wrong_dtype", Reason.WRONG_DTYPE),
        ("absent", Reason.WRONG_SHAPE),
        ("bare", Reason.WRONG_SHAPE),
        ("gone", Reason.MISSING_ENTRY),
    ],
)
def test_torch_fault_has_its_reason(launcher, candidate, entry, reason):
    with pytest.raises(CandidateFault) as caught:
        run_doubling(launcher, candidate(entry, TORCH, "torch"), signature=SCALED)
    assert caught.value.reason is reason, caught.value.detail


def test_matrix_arguments_keep_their_shape_and_dtype(launcher, candidate):
    source = "def entry(a, b, scale, **_):\n    return {'out': ((a @ b) * scale).float()}\n"
    signature = Signature(
        inputs=(Argument("a", "T", ("m", "k")), Argument("b", "T", ("k", "n"))),
        outputs=(Argument("out", "f32", ("m", "n")),),
        scalars=(("scale", 0.5),),
        dims=("m", "k", "n"),
    )
    sizes = {"m": 5, "k": 7, "n": 3}
    inputs = {"a": torch.randn(5, 7).bfloat16(), "b": torch.randn(7, 3).bfloat16()}
    with launcher.open(candidate("entry", source, "torch"), signature) as runner:
        runner.load(Config("m", sizes, "bf16", {}), 1)
        (outputs,) = runner.batch([inputs]).outputs

    assert outputs["out"].dtype is torch.float32
    assert torch.equal(outputs["out"], ((inputs["a"] @ inputs["b"]) * 0.5).float())
