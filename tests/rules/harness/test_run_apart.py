"""Triton candidates on the host: two processes, of which the module's has no tensor's memory."""

# mypy: allow-untyped-defs, allow-untyped-calls

import pytest
import torch
from run_support import DOUBLING, config, fault_of, is_doubled, module, run_doubling

from base.tensors import poison_mask  # isort: skip
from terms.reasons import Reason  # isort: skip

CHEATS = """
import ctypes, os
import torch
import triton
import triton.language as tl

@triton.jit
def doubled(x, y, n):
    at = tl.program_id(0) * 256 + tl.arange(0, 256)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

def honest(x, y, *, n):
    doubled[(triton.cdiv(n, 256),)](x, y, n)

def looks_with_ctypes(x, y, *, n):
    ctypes.string_at(x.data_ptr(), 4)

def maps_memory_of_its_own(x, y, *, n):
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for tensor in (x, y):
        assert protect(tensor.data_ptr() & -4096, 8192, 3) == 0
    ctypes.memmove(y.data_ptr(), x.data_ptr(), 4 * n)

def opens_the_other_half(x, y, *, n):
    open(f"/proc/{os.getppid()}/mem", "rb")

def opens_the_other_halfs_files(x, y, *, n):
    os.open(f"/proc/{os.getppid()}/fd/3", os.O_RDWR)

def asks_for_others_memory(x, y, *, n):
    device = doubled.definitions.device
    other = [x.data_ptr() + (1 << 24), "float32", [n], [1]]
    device.ask("copy", [y.data_ptr(), "float32", [n], [1]], other)

def converts_afar(x, y, *, n):
    device = doubled.definitions.device
    device.ask("copy", [y.data_ptr(), "float32", [n], [1]], [x.data_ptr(), "int32", [n], [1]])

def says_that_kernels_are_elsewhere(x, y, *, n):
    device = doubled.definitions.device
    device.ask("define", 7, ["/usr/lib/python3.11/this.py", 1, "x"], {}, False)
    device.ask("launch", 7, [1, 1, 1], {}, [])

WHERE = [__file__, doubled.fn.__code__.co_firstlineno, "doubled"]

def names_an_object(x, y, *, n):
    device = doubled.definitions.device
    device.ask("define", 7, WHERE, {"tl": ["language", "triton.language.core", "os"]}, False)
    device.ask("launch", 7, [1, 1, 1], {}, [])

def limits_its_own_time(x, y, *, n):
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
    while True:
        pass

def sends_rubbish(x, y, *, n):
    doubled.definitions.device.ask("launch", {}, [[[[]]]])
"""


@pytest.fixture
def candidate(tmp_path):
    def make(entry, source=CHEATS):
        return module(tmp_path, source, entry, "python")

    return make


@pytest.mark.parametrize(
    ("cheat", "reason", "word"),
    [
        ("looks_with_ctypes", Reason.CRASH, "in looks_with_ctypes"),
        ("opens_the_other_half", Reason.EXCEPTION, "PermissionError"),
        ("opens_the_other_halfs_files", Reason.EXCEPTION, "PermissionError"),
        ("asks_for_others_memory", Reason.EXCEPTION, "memory of another call"),
        ("converts_afar", Reason.EXCEPTION, "a copy that converts"),
        ("says_that_kernels_are_elsewhere", Reason.UNSUPPORTED_FEATURE, "own file"),
        ("names_an_object", Reason.EXCEPTION, "triton.language.core.os"),
        ("sends_rubbish", Reason.EXCEPTION, "request launch"),
        ("limits_its_own_time", Reason.TIMEOUT, "used up its processor time"),
    ],
)
def test_what_a_module_does_to_the_other_half_is_its_own_fault(
    launcher, candidate, cheat, reason, word
):
    fault = fault_of(launcher, candidate(cheat))

    assert fault.reason is reason, fault.detail
    assert word in fault.detail


def test_a_refused_operator_is_named_with_its_line(launcher, candidate):
    source = CHEATS + "\ndef decoy(x, y, *, n):\n    honest(torch.mul(x, 1), y, n=n)\n"
    fault = fault_of(launcher, candidate("decoy", source))

    assert fault.reason is Reason.KERNEL_BYPASSED
    assert "in decoy: honest(torch.mul(x, 1), y, n=n)" in fault.detail
    assert "'aten.mul.Tensor' computes outside the candidate's kernels" in fault.detail


def test_memory_that_a_module_maps_for_itself_is_nobody_elses(launcher, candidate):
    """It can have pages at its tensors' addresses: no input is there, and no output goes out."""
    ((_, batch),) = run_doubling(launcher, candidate("maps_memory_of_its_own"))

    assert all(poison_mask(outputs["y"], "f32").all() for outputs in batch.outputs)


TRITON = """
import triton
import triton.language as tl

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr, PAST: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, 2 * value, mask=at < n + PAST)

def doubled(x, y, *, n):
    kernel[(triton.cdiv(n, 256),)](x, y, n, 256, 0)

def past(x, y, *, n):
    kernel[(triton.cdiv(n, 256),)](x, y, n, 256, 1)
"""


def test_triton_kernel_runs_in_the_interpreter(launcher, candidate):
    (inputs, batch), _ = run_doubling(launcher, candidate("doubled", TRITON), batches=2)

    assert is_doubled(inputs, batch)


def test_triton_kernel_out_of_bounds_is_named(launcher, candidate):
    fault = fault_of(launcher, candidate("past", TRITON))

    assert fault.reason is Reason.OUT_OF_BOUNDS
    assert "'y'" in fault.detail


def test_what_copies_alone_have_made_is_there_without_launches(launcher, candidate):
    """PyTorch may copy, and in some tasks that is the work: a call that is left out shows it."""
    source = (
        CHEATS
        + """
def moves(x, y, *, n):
    y[1:].copy_(x[:-1])
    y[:1].copy_(x[-1:])

def copies_what_its_kernel_made(x, y, *, n):
    made = torch.empty_like(y)
    honest(x, made, n=n)
    y.copy_(made)
"""
    )
    inputs = [{"x": torch.rand(40)} for _ in range(3)]
    right = {"moves": lambda x: x.roll(1), "copies_what_its_kernel_made": lambda x: 2 * x}
    for entry, expected in right.items():
        with launcher.open(candidate(entry, source), DOUBLING) as opened:
            opened.load(config(40), 3)
            made = opened.batch(inputs, left_out=1).outputs
            agrees = [
                torch.equal(ran["y"], expected(given["x"]))
                for ran, given in zip(made, inputs, strict=True)
            ]
        assert agrees == [True, entry == "moves", True], entry
