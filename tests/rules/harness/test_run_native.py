"""The native runner calls what the signature says, with the judge's buffers."""

# mypy: allow-untyped-defs, allow-untyped-calls

from pathlib import Path

import pytest
import torch
from run_support import (
    DOUBLING,
    build_native_runner,
    config,
    draws,
    is_doubled,
    native,
    native_runner,
    run_doubling,
)

from base.program import Argument, CandidateFault, Config, Signature  # isort: skip
from terms.reasons import Reason  # isort: skip

CALLS = """
#include <stdint.h>
typedef const float* in;
int doubled_f32(in x, float* y, int64_t n, void* s) {
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];
  return 0;
}
int doubled_f64(const double* x, double* y, int64_t n, void* s) {
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];
  return 0;
}
int plain(in x, float* y, int64_t n, void* s) { return doubled_f32(x, y, n, s); }

// Integers beyond the six (eight) registers, floats between them, and more than sixteen in all.
int many(in a, in b, in c, in d, float* p, float* q, float* r,
         float f0, int64_t i0, float f1, float f2, int64_t i1, float f3, float f4, float f5,
         int64_t i2, float f6, int64_t i3, float f7,
         int64_t d0, int64_t d1, int64_t d2, int64_t d3, int64_t d4, int64_t d5, void* stream) {
  if (stream != 0) return 1;
  p[0] = a[0] + 10 * b[0] + 100 * c[0] + 1000 * d[0];
  q[0] = f0, q[1] = f1, q[2] = f2, q[3] = f3, q[4] = f4, q[5] = f5, q[6] = f6, q[7] = f7;
  r[0] = i0, r[1] = i1, r[2] = i2, r[3] = i3;
  r[4] = d0, r[5] = d1, r[6] = d2, r[7] = d3, r[8] = d4, r[9] = d5;
  return 0;
}

// Its first call finds the judge's poison in the workspace, the others what the one before left.
int64_t scratching_workspace(int64_t n) { return n * sizeof(float); }
int scratching(in x, float* y, int64_t n, float* w, void* s) {
  for (int64_t i = 0; i < n; ++i) w[i] = x[i];
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * w[i];
  return 0;
}
int64_t overflowing_workspace(int64_t n) { return n; }
int overflowing(in x, float* y, int64_t n, char* w, void* s) { w[n] ^= 1; return 0; }
int64_t greedy_workspace(int64_t n) { return 1ll << 40; }
int greedy(in x, float* y, int64_t n, char* w, void* s) { return 0; }
int64_t refused_workspace(int64_t n) { return -1; }
int refused(in x, float* y, int64_t n, char* w, void* s) { return 0; }
int64_t modest_workspace(int64_t n) { return 0; }
int modest(in x, float* y, int64_t n, char* w, void* s) {
  return w || s ? 1 : doubled_f32(x, y, n, s);
}

int copies(const uint8_t* b, const int64_t* l, const uint16_t* h, uint8_t* bo, int64_t* lo,
           uint16_t* ho, int64_t n, void* s) {
  for (int64_t i = 0; i < n; ++i) bo[i] = b[i], lo[i] = l[i], ho[i] = h[i];
  return 0;
}

static float earlier;
int remembers(in x, float* y, int64_t n, void* s) {
  doubled_f32(x, y, n, s);
  y[0] = earlier;
  earlier = 1;
  return 0;
}
"""


@pytest.mark.parametrize(
    ("entry", "dtype"), [("doubled", "f32"), ("doubled", "f64"), ("plain", "f32")]
)
def test_entry_is_looked_up_by_dtype_then_by_name(launcher, entry, dtype):
    with launcher.open(native(CALLS, entry), DOUBLING) as runner:
        runner.load(config(dtype=dtype), 2)
        kind = torch.float32 if dtype == "f32" else torch.float64
        inputs = [{"x": torch.randn(1000, dtype=kind)} for _ in range(2)]
        assert is_doubled(inputs, runner.batch(inputs))


def test_arguments_of_every_class_and_place_arrive(launcher):
    names = {"inputs": "abcd", "outputs": "pqr"}
    scalars = [("f0", 0.5), ("i0", 7), ("f1", 1.5), ("f2", 2.5), ("i1", -8), ("f3", 3.5)]
    scalars += [("f4", 4.5), ("f5", 5.5), ("i2", 2**40), ("f6", 6.5), ("i3", 9), ("f7", 7.5)]
    dims = {f"d{i}": 10 + i for i in range(6)}
    signature = Signature(
        inputs=tuple(Argument(name, "f32", ("d0",)) for name in names["inputs"]),
        outputs=tuple(Argument(name, "f32", ("d0",)) for name in names["outputs"]),
        scalars=tuple(scalars),
        dims=tuple(dims),
    )
    with launcher.open(native(CALLS, "many"), signature) as runner:
        runner.load(Config("many", dims, "f32", {"f7": 70.5, "i3": 90}), 1)
        inputs = {name: torch.full((10,), float(i + 1)) for i, name in enumerate("abcd")}
        (outputs,) = runner.batch([inputs]).outputs

    assert outputs["p"][0] == 4321
    assert outputs["q"][:8].tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 70.5]
    assert outputs["r"].tolist() == [7, -8, 2**40, 90, 10, 11, 12, 13, 14, 15]


def test_each_dtype_arrives_bit_for_bit(launcher):
    kinds = {"b": "bool", "l": "i64", "h": "bf16"}
    signature = Signature(
        inputs=tuple(Argument(name, kind, ("n",)) for name, kind in kinds.items()),
        outputs=tuple(Argument(name + "o", kind, ("n",)) for name, kind in kinds.items()),
        scalars=(),
        dims=("n",),
    )
    inputs = {
        "b": torch.randn(100) > 0,
        "l": torch.randint(-(2**62), 2**62, (100,)),
        "h": torch.randn(100).to(torch.bfloat16),
    }
    with launcher.open(native(CALLS, "copies"), signature) as runner:
        runner.load(config(100), 1)
        (outputs,) = runner.batch([inputs]).outputs

    assert all(torch.equal(outputs[name + "o"], inputs[name]) for name in kinds)


@pytest.mark.parametrize("entry", ["scratching", "modest"])
def test_workspace_is_passed_before_the_stream(launcher, entry):
    ((inputs, batch),) = run_doubling(launcher, native(CALLS, entry))

    assert is_doubled(inputs, batch)


@pytest.mark.parametrize(
    ("entry", "reason", "word"),
    [
        ("overflowing", Reason.OUT_OF_BOUNDS, "just past the end of 'workspace'"),
        ("greedy", Reason.OUT_OF_MEMORY, str(2**40)),
        ("refused", Reason.OUT_OF_MEMORY, "-1"),
    ],
)
def test_workspace_has_bounds(launcher, entry, reason, word):
    with pytest.raises(CandidateFault) as caught:
        run_doubling(launcher, native(CALLS, entry))
    assert caught.value.reason is reason
    assert word in caught.value.detail


def test_fewer_calls_than_slots_and_several_configs(launcher):
    """A second config replaces the first; a batch need not fill its slots."""
    with launcher.open(native(CALLS, "doubled"), DOUBLING) as runner:
        for n, slots, calls in ((1000, 8, 3), (1, 1, 1), (70_000, 3, 3), (5, 200, 200)):
            runner.load(config(n), slots)
            for _ in range(2):
                inputs = draws(calls, n)
                assert is_doubled(inputs, runner.batch(inputs))


def test_more_slots_than_the_kernel_has_mappings(launcher):
    with launcher.open(native(CALLS, "doubled"), DOUBLING) as runner:
        runner.load(config(4), 20_000)
        inputs = draws(20, 4)
        assert is_doubled(inputs, runner.batch(inputs))


def test_empty_tensor(launcher):
    with launcher.open(native(CALLS, "doubled"), DOUBLING) as runner:
        runner.load(config(0), 1)
        assert runner.batch(draws(1, 0)).outputs[0]["y"].shape == (0,)


def test_every_runner_is_a_fresh_process(launcher):
    """What a candidate remembers ends with its process."""
    for _ in range(2):
        ((_, batch),) = run_doubling(launcher, native(CALLS, "remembers"), calls=2)
        assert sorted(outputs["y"][0].item() for outputs in batch.outputs) == [0, 1]


def test_slots_are_shuffled(launcher):
    """The address of a call's buffers says nothing about its place in the batch."""
    program = native(
        "int where(const float* x, unsigned long* y, long n, void* s)"
        "{ y[0] = (unsigned long)x; return 0; }",
        "where",
    )
    signature = Signature(DOUBLING.inputs, (Argument("y", "i64", ("n",)),), (), ("n",))
    with launcher.open(program, signature) as runner:
        runner.load(config(4), 64)
        orders = [
            [outputs["y"][0].item() for outputs in runner.batch(draws(64, 4)).outputs]
            for _ in range(2)
        ]

    assert sorted(orders[0]) == sorted(orders[1])
    assert len(set(orders[0])) == 64
    assert orders[0] != orders[1] != sorted(orders[1])


def test_a_call_is_repeated_in_one_slot(launcher):
    """The fifth call finds what the fourth has left, and the judge reads what the fifth leaves."""
    program = native(
        "int counts(const long* x, long* y, long n, void* s)"
        "{ static long calls, *last; if (last && last != y) return 1;"
        "  last = y; y[0] = ++calls + x[0]; return 0; }",
        "counts",
    )
    inputs = {"x": torch.full((4,), 100)}
    signature = Signature(
        (Argument("x", "i64", ("n",)),), (Argument("y", "i64", ("n",)),), (), ("n",)
    )
    with launcher.open(program, signature) as runner:
        runner.load(config(4), 8)
        batch = runner.repeat(inputs, 5)
        with pytest.raises(ValueError, match="a batch of 9 calls"):
            runner.repeat(inputs, 9)

    assert [outputs["y"][0].item() for outputs in batch.outputs] == [105]
    assert 0 < batch.reported_ns < batch.wall_ns


def test_both_clocks_see_a_batch(launcher):
    ((_, batch),) = run_doubling(launcher, native(CALLS, "doubled"))
    assert 0 < batch.reported_ns < batch.wall_ns

    with launcher.open(native(CALLS, "doubled"), DOUBLING) as runner:
        empty = runner.empty()
    assert 0 <= empty.reported_ns < empty.wall_ns
    assert empty.outputs == ()


def test_the_kernel_counts_what_a_batch_runs(launcher):
    with launcher.open(native(CALLS, "doubled"), DOUBLING) as runner:
        runner.load(config(), 3)
        batch = runner.batch(draws(3))

    assert 0 < batch.thread_ns <= batch.process_ns


def test_the_kernel_counts_how_long_others_had_the_processor(launcher):
    with launcher.open(native(CALLS, "doubled"), DOUBLING) as runner:
        runner.load(config(), 1)
        waits = [runner.batch(draws(1)).waited_ns for _ in range(20)]

    assert min(waits) >= 0
    assert sum(waits) > 0  # whoever is woken waits a moment


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "a batch of 0 calls"),
        (draws(3), "a batch of 3 calls"),
        ([{}], "input 'x' is missing"),
        (draws(1, 999), "(999,)"),
        ([{"x": torch.zeros(1000, dtype=torch.float16)}], "float16"),
    ],
)
def test_inputs_that_do_not_fit_are_the_judges_mistake(launcher, inputs, message):
    with launcher.open(native(CALLS, "doubled"), DOUBLING) as runner:
        runner.load(config(), 2)
        with pytest.raises(ValueError, match=r"calls|input") as caught:
            runner.batch(inputs)
        assert message in str(caught.value)
        good = draws(1)
        assert is_doubled(good, runner.batch(good)), "the runner is still of use"


def test_batch_needs_a_config(launcher):
    with (
        launcher.open(native(CALLS, "doubled"), DOUBLING) as runner,
        pytest.raises(ValueError, match="no config"),
    ):
        runner.batch(draws(1))


def test_signature_beyond_the_calling_convention_is_refused(launcher):
    scalars = tuple((f"s{i}", 0.5) for i in range(9))
    signature = Signature(DOUBLING.inputs, DOUBLING.outputs, scalars, ("n",))
    with (
        launcher.open(native(CALLS, "doubled"), signature) as runner,
        pytest.raises(ValueError, match="9 float arguments"),
    ):
        runner.load(config(), 1)


def test_runner_builds_for_the_other_machine_too(tmp_path):
    built = build_native_runner(tmp_path / "other", "--target=aarch64-linux-gnu")

    assert int.from_bytes(Path(built).read_bytes()[18:20], "little") == 183, "EM_AARCH64"


def test_runner_needs_no_cpp_library():
    names = Path(native_runner()).read_bytes()
    assert b"libc.so.6" in names
    assert b"libstdc++" not in names
    assert b"libc++" not in names
