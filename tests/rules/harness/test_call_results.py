"""How results of calls are read: wherever they lie, whatever a runner says of them."""

# mypy: allow-untyped-defs, allow-untyped-calls

import struct
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from base.layouts import Pieces
from base.spec import parse_spec
from call_forms import FORMS
from call_specs import judged, spec_of
from correctness import gate
from perf import gate as perf
from pyrunner_call.called import Called
from runners import results
from runners.results import _reused

WRONG = "WRONG_RESULT"
REUSING = """
class ModelNew(Model):
    kept = {}

    def forward(self, x):
        y = self.kept.setdefault((x.shape[0], self.fc.out_features), super().forward(x))
        y.copy_(super().forward(x)FACTOR)
        return yCOPY
"""
AGAIN = "a later call returned the same memory for 'y': each call must allocate its own"


def test_a_buffer_that_calls_share_is_told_as_the_reason(launcher, tmp_path):
    reuses = REUSING.replace("FACTOR", "").replace("COPY", "")
    verdict = judged(launcher, tmp_path, "linear", reuses)

    assert verdict.reason == "WRONG_RESULT"
    assert AGAIN in verdict.detail


@pytest.mark.parametrize(("factor", "reason"), [("", ""), (" * 2", "WRONG_RESULT")])
def test_a_buffer_that_is_copied_is_no_reason(launcher, tmp_path, factor, reason):
    copies = REUSING.replace("FACTOR", factor).replace("COPY", ".clone()")
    verdict = judged(launcher, tmp_path, "linear", copies)

    assert verdict.reason == reason, verdict.detail
    assert "later call" not in verdict.detail


PEEKING = """
class Hooked(torch.Tensor):
    seen, given = [], []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func.__name__ == "copy_":
            cls.seen = [x.clone() for x in cls.given]
        return super().__torch_function__(func, types, args, kwargs or {})

class ModelNew(Model):
    def __init__(self, *given):
        super().__init__(*given)
        self.register_buffer("hook", torch.zeros(1).as_subclass(Hooked), persistent=False)

    def forward(self, x):
        y = super().forward(x)
        early = any(x.shape == seen.shape and x.equal(seen) for seen in Hooked.seen)
        if not any(x is given for given in Hooked.given):
            Hooked.given.append(x)
        return y + 1e6 * EARLY
"""


@pytest.mark.parametrize(("early", "reason"), [("early", ""), ("bool(Hooked.seen)", WRONG)])
def test_what_is_done_between_batches_sees_no_inputs_of_the_next(launcher, tmp_path, early, reason):
    """Objects are restored outside of a batch's time, by code that may be a candidate's."""
    policy = {"budget_seconds": 0.5, "max_processes": 3, "max_slots": 1}
    spec = spec_of(tmp_path, FORMS["linear"], PEEKING.replace("EARLY", early))
    verdict = perf.run(parse_spec({**spec, "gate": "perf", "policy": policy}), launcher)

    assert verdict.reason == reason, verdict.detail


def test_restoring_objects_is_in_no_batchs_time():
    """A candidate without buffers would be credited what empty batches of a baseline take."""
    events: list[str] = []
    one: Any = Called.__new__(Called)
    one.block = SimpleNamespace(order_offset=0, copied=False)
    one._memory, one._operands = struct.pack("<I", 0), [((), {})]

    def timed(work):
        events.append("clock")
        work()
        return 1

    one._returned = SimpleNamespace(note=lambda *_: None)
    one._results, one._restored = [], False
    one._ground = SimpleNamespace(timed=timed)
    one._boundary = SimpleNamespace(
        function=lambda: events.append("call"), restore=lambda: events.append("restore")
    )
    for calls in (1, 0):
        one.collect()
        events.append("request")
        one.run(calls)

    assert events == [*["restore", "request", "clock", "call"], *["restore", "request", "clock"]]


LAID_OUT = """
class ModelNew(Model):
    def forward(self, x):
        y = super().forward(x)
        rows, cols = y.shape
        wide = torch.zeros(2 * rows, 3 * cols)
        return LAYOUT
"""
ANYWHERE = {
    "rows of a wider tensor": "wide[:rows, :cols].copy_(y)",
    "elements apart": "wide[::2, ::3].copy_(y)",
    "columns apart, transposed": "torch.zeros(cols, 2 * rows)[:, ::2].copy_(y.T).T",
    "dense": "y",
}


@pytest.mark.parametrize("layout", ANYWHERE)
def test_a_result_may_have_gaps_if_the_task_says_so(launcher, tmp_path, layout):
    free = {**FORMS["linear"], "layout": {"y": "any"}}
    solution = LAID_OUT.replace("LAYOUT", ANYWHERE[layout])
    spec = spec_of(tmp_path, free, solution)
    far = spec_of(tmp_path / "far", free, solution.replace("y =", "y = 1.01 *"))

    assert gate.run(parse_spec(spec), launcher).outcome == "PASS"
    assert gate.run(parse_spec(far), launcher).reason == "WRONG_RESULT"


def test_a_result_in_very_many_pieces_is_refused(launcher, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "MOST_PIECES", 1)
    free = {**FORMS["linear"], "layout": {"y": "any"}}
    solution = LAID_OUT.replace("LAYOUT", ANYWHERE["elements apart"])

    verdict = gate.run(parse_spec(spec_of(tmp_path, free, solution)), launcher)

    assert verdict.reason == "WRONG_LAYOUT"
    assert "pieces of memory instead of at most 1: return its .contiguous()" in verdict.detail


FORGED = """
import struct
from pyrunner_call import returned

note = returned.Returned.note


def forged(self, slot, result):
    note(self, slot, result)
    at = slot * returned.RECORD.size * len(self._wanted)
    struct.pack_into("FORMAT", self._table, at + PLACE, VALUE)


returned.Returned.note = forged
"""
FORGERIES = {
    "an address that no process has": ("<Q", 0, (1 << 64) - 4096),
    "the last address": ("<Q", 0, (1 << 63) - 1),
    "a first address": ("<Q", 0, 0),
    "a dtype": ("<I", 8, 4_000_000_000),
    "axes": ("<I", 12, 4_000_000_000),
    "an extent": ("<q", 16, -1),
    "a stride": ("<q", 80, -1),
    "a long stride": ("<q", 80, 1 << 62),
    "the longest stride": ("<q", 80, -(1 << 63)),
}


@pytest.mark.parametrize("layout", ["", "dense", "any"])
@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_record_is_the_candidates_fault(launcher, tmp_path, forgery, layout):
    """Whatever a runner notes, the judge has a verdict on it: no fault of this machine's."""
    code, place, value = FORGERIES[forgery]
    form = {**FORMS["linear"], "layout": {"y": layout} if layout else {}}
    solution = FORGED.replace("FORMAT", code).replace("PLACE", f"{place}")
    spec = spec_of(tmp_path, form, solution.replace("VALUE", f"{value}"))

    assert gate.run(parse_spec(spec), launcher).outcome in {"FAIL", "REJECTED"}


UNCHECKED = """
from pyrunner_call import called, returned

made, init = called.Called.__init__, returned.Returned.__init__


def unchecked(self, *given, **how):
    init(self, *given, **how)
    self._arenas = (range(0), range(0))


def kept(self, *given, **how):
    made(self, *given, **how)
    for slot, (arguments, _) in enumerate(self._operands):
        arguments[0].place = self._outputs[slot]["y"]


returned.Returned.__init__, called.Called.__init__ = unchecked, kept


def same(x):
    return RESULT
"""
SAME = {
    "call": "y = same(x)",
    "inputs": {"x": "T[n]"},
    "outputs": {"y": "T[n]"},
    "dims": {"n": "1..4096"},
    "configs": [{"n": 2048}],
    "reference": """
        def inputs(config, generator):
            return {"x": torch.rand(config["n"], generator=generator)}

        def reference(x, **_):
            return {"y": x.clone()}
        """,
    "right": """
        def same(x):
            return x.clone()
        """,
}


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ("x.clone()", ""),
        ("x", "OUTPUT_ALIASED"),
        ("x[:]", "OUTPUT_ALIASED"),
        ("x.place.copy_(x)", "OUTPUT_ALIASED"),
    ],
)
def test_results_in_the_judges_memory_are_told_by_the_kernels_own_list(
    launcher, tmp_path, result, reason
):
    """The runner's own check is one that a candidate can remove."""
    spec = spec_of(tmp_path, SAME, UNCHECKED.replace("RESULT", result))

    assert gate.run(parse_spec(spec), launcher).reason == reason


def test_strides_of_axes_without_extent_say_nothing(launcher, tmp_path):
    form = {**FORMS["linear"], "layout": {"y": "any"}}
    form["configs"] = [{"rows": 1, "cols": 16, "out": 4}]
    solution = FORGED.replace("FORMAT", "<q").replace("PLACE", "80").replace("VALUE", "-1")
    spec = spec_of(tmp_path, form, solution)

    first = {**spec, "policy": {"distributions": ["default"], "edges": 0}}
    assert gate.run(parse_spec(first), launcher).cases[0]["verdict"] == "PASS"


@pytest.mark.parametrize(
    ("made", "run", "count"),
    [
        (lambda x: x, 5040, 1),
        (lambda x: x.permute(2, 0, 3, 1), 5040, 1),
        (lambda x: x[:, 2:5], 270, 7),
        (lambda x: x[:, :, ::2, 1:4], 3, 280),
        (lambda x: x[3:4, :, 1:2, :], 10, 8),
        (lambda x: x[:2, :1, :1].expand(2, 6, 4, 10), 10, 48),
        (lambda x: x.flatten().as_strided((3, 4), (1, 1)), 4, 3),
        (lambda x: x[0, 0, 0, 0], 1, 1),
    ],
)
def test_pieces_of_memory_are_those_of_the_tensor(made, run, count):
    whole = torch.arange(5040.0).view(7, 8, 9, 10)
    tensor = made(whole)

    pieces = Pieces.of(tuple(tensor.shape), tensor.stride())
    flat, begin = whole.flatten(), tensor.storage_offset()
    read = torch.cat([flat[begin + at : begin + at + pieces.run] for at in pieces.starts()])

    assert (pieces.run, pieces.count) == (run, count)
    assert torch.equal(read.as_strided(tensor.shape, pieces.strides), tensor)


def test_only_results_that_were_overwritten_are_named():
    """By slot: places are address, place in the order of calls, slot, end, name."""
    same = [(100, place, 7 - place, 140, "y") for place in range(3)]
    apart = [(200, 0, 7, 240, "z"), (240, 1, 6, 280, "z"), (300, 2, 5, 340, "z")]
    partly = [(400, 1, 6, 500, "a"), (420, 0, 7, 440, "b"), (460, 2, 5, 470, "b")]
    in_one_call = [(600, 0, 7, 640, "c"), (600, 0, 7, 640, "d")]

    assert _reused([*apart, *in_one_call]) == {}
    assert _reused([*same, *apart]) == {7: {"y"}, 6: {"y"}}
    assert _reused(partly) == {7: {"b"}, 6: {"a"}}
