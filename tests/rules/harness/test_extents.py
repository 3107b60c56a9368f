"""Long and thin: each dim at its declared maximum, within bounds of time and memory."""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="arg-type"

from __future__ import annotations

import time
import weakref
from collections import Counter
from dataclasses import replace

import pytest
import torch
from judging_doubles import SPEC, Doubles, softmax, write_spec

from correctness import extents  # isort: skip
from correctness import gate as correctness  # isort: skip
from base.program import MachineFault  # isort: skip
from base.sampler import Ground  # isort: skip
from base.spec import parse_spec  # isort: skip
from gpu import session  # isort: skip
from terms.correctness import CorrectnessPolicy  # isort: skip
from truth.oracle import TaskFault  # isort: skip
from truth.stage import StageReport  # isort: skip


def stage(verdict):
    return next(case for case in verdict.cases if case["stage"] == extents.STAGE)


def thin(folder, candidate, baseline=softmax, *, edges=6, **space):
    dims = {"rows": [1, 4096], "cols": [1, 131072], **space}
    space = {**SPEC["space"], "dims": dims}
    spec = parse_spec(write_spec(folder, space=space, policy={"edges": edges}))
    return correctness.run(spec, Doubles({"candidate": candidate, "baseline": baseline}))


def counts_columns_in_16_bits(x, y, scale, cols, **_):
    seen = cols % 65536 or cols
    y.zero_()
    y[:, :seen] = torch.softmax(x[:, :seen].float() * scale, dim=-1)


def test_each_dim_is_tried_as_long_as_it_is_declared(tmp_path):
    verdict = thin(tmp_path, softmax)

    tried = ["f32 rows=4096 cols=1", "f16 rows=1 cols=131072"]
    assert stage(verdict)["configs"] == tried
    assert verdict.outcome == "PASS"


def test_a_count_of_16_bits_is_wrong_there_alone(tmp_path):
    verdict = thin(tmp_path, counts_columns_in_16_bits, cols=[1, 131073])

    assert (verdict.outcome, verdict.reason) == ("FAIL", "WRONG_RESULT")
    assert verdict.summary.startswith("extents: ")


def row_by_row(x, y, scale, rows, **_):
    time.sleep(rows * 1e-3)
    softmax(x, y, scale)


def test_a_dim_that_would_take_minutes_is_as_long_as_there_is_time_for(tmp_path):
    verdict = thin(tmp_path, softmax, row_by_row)

    found = stage(verdict)
    assert found["configs"] == ["f32 rows=512 cols=1", "f16 rows=1 cols=131072"]
    assert found["not_applicable"] == ["f32 rows=4096 cols=1"]


def test_a_dim_that_takes_seconds_at_once_is_left_out_and_named(tmp_path):
    def slowly(x, y, scale, rows, cols, **_):
        time.sleep(1.1 * (cols == 1 and rows >= 64))
        softmax(x, y, scale)

    found = stage(thin(tmp_path, softmax, slowly))

    assert found["configs"] == ["f16 rows=1 cols=131072"]
    assert found["not_applicable"] == ["f32 rows=4096 cols=1"]


def test_a_loop_that_goes_round_once_is_wrong_where_it_goes_round_again(tmp_path):
    """Its first round does 256 rows; all 4096 would take too long."""

    def first_round_alone(x, y, scale, rows, **_):
        y.zero_()
        softmax(x[:256], y[:256], scale)

    verdict = thin(tmp_path, first_round_alone, row_by_row, edges=0)

    assert (verdict.outcome, verdict.reason) == ("FAIL", "WRONG_RESULT")
    assert "in f32 rows=512 cols=1" in verdict.detail, verdict.detail


def test_sizes_outside_of_the_space_are_not_tried(tmp_path):
    def of_thirds(x, y, scale, rows, **_):
        assert rows % 3 == 0
        softmax(x, y, scale)

    dims = {"rows": [3, 4095], "cols": [1, 8]}
    space = {**SPEC["space"], "dims": dims, "where": ["rows % 3 == 0"]}
    configs = [
        {**config, "name": f"c{config['dtype']}", "dims": {"rows": 6, "cols": 8}}
        for config in SPEC["configs"]
    ]
    spec = parse_spec(write_spec(tmp_path, space=space, configs=configs))

    verdict = correctness.run(spec, Doubles({"candidate": of_thirds, "baseline": row_by_row}))

    assert verdict.outcome == "PASS", verdict.detail
    assert "f32 rows=513 cols=1" in stage(verdict)["configs"]


def test_a_dim_whose_square_takes_minutes_is_tried_no_longer_than_that(tmp_path):
    """Short extents say nothing of it: 512 columns take 3 ms, and all of them 3 minutes.

    4096 columns take 0.17 s, so that four times as many are tried."""

    def each_with_each(x, y, scale, cols, **_):
        time.sleep(cols * cols * 1e-8)
        softmax(x, y, scale)

    verdict = thin(tmp_path, softmax, each_with_each)

    assert verdict.outcome == "PASS"
    assert stage(verdict)["configs"][1] == "f16 rows=1 cols=16384"
    assert stage(verdict)["not_applicable"] == ["f16 rows=1 cols=131072"]


def test_a_busy_machine_leaves_no_dim_out(tmp_path):
    calls = Counter[tuple[int, int]]()

    def waits_at_first(x, y, scale, rows, cols, **_):
        calls[rows, cols] += 1
        if calls[rows, cols] <= 5:
            time.sleep(0.06)
        softmax(x, y, scale)

    verdict = thin(tmp_path, counts_columns_in_16_bits, waits_at_first, cols=[1, 131073])

    assert (verdict.outcome, verdict.reason) == ("FAIL", "WRONG_RESULT")
    assert verdict.summary.startswith("extents: ")


def test_tensors_stay_within_memory(tmp_path):
    verdict = thin(tmp_path, softmax, cols=[1, 1 << 40])

    assert stage(verdict)["configs"][1] == f"f16 rows=1 cols={1 << 22}"


def test_beyond_32_bits_all_dims_grow(tmp_path):
    dims = {"rows": [1, 1 << 17], "cols": [1, 1 << 17]}
    spec = parse_spec(write_spec(tmp_path, space={**SPEC["space"], "dims": dims}))
    ground = Ground.of(spec)

    wide = extents.beyond_32_bits(ground, 1 << 38)

    assert wide is not None
    assert (wide.dtype, dict(wide.dims)) == ("f16", {"rows": 1 << 16, "cols": (1 << 15) + 1})
    assert extents.beyond_32_bits(ground, 1 << 36) is None  # no room
    assert extents.beyond_32_bits(replace(ground, space=parse_spec(SPEC).space), 1 << 38) is None


@pytest.mark.parametrize("least", [0, 1, 3])
@pytest.mark.parametrize(
    "where",
    ["", "cols % 2 == 1", "cols % 64 == 0", "rows < cols", "cols <= 3 * rows", "rows == 7"],
)
def test_beyond_32_bits_is_a_size_of_the_task(tmp_path, least, where):
    ground = Ground.of(parse_spec(write_spec(tmp_path)))
    dims = {"rows": (least, 1 << 17), "cols": (1, 1 << 17)}
    space = replace(ground.space, dims=dims, where=(where,) if where else ())

    wide = extents.beyond_32_bits(replace(ground, space=space), 1 << 38)

    assert (wide is None) == (where == "rows == 7")  # 7 * 2¹⁷ elements are too few
    if wide is not None:
        assert space.contains(wide.dims), wide.dims
        assert 1 << 31 < wide.dims["rows"] * wide.dims["cols"] <= 1.1 * (1 << 31), wide.dims


class Held:
    """Stands for what an oracle holds when a device has no more memory."""


class Judge:
    """One whose calls are too large."""

    def __init__(self, monkeypatch, fault):
        self.ended = []
        self._fault = fault
        monkeypatch.setattr(correctness, "run_cases", self._run)
        monkeypatch.setattr(session, "memory_bytes", lambda: 1 << 38)

    def _run(self, *_, **__):
        held = Held()
        self.held = weakref.ref(held)
        try:
            raise torch.OutOfMemoryError("more than there is")
        except torch.OutOfMemoryError as error:
            raise self._fault("no") from error

    def thin_out(self):
        self.ended.append("thinned out")

    def kill(self):
        self.ended.append("killed")

    def give_back_memory(self):
        assert self.held() is None
        self.ended.append("gave back")


@pytest.mark.parametrize("fault", [RuntimeError, MachineFault, TaskFault])
def test_what_is_too_large_is_freed_before_its_memory_is_given_back(tmp_path, monkeypatch, fault):
    """Runners get none of what PyTorch keeps in reserve: the next stage could start none."""
    dims = {"rows": [1, 1 << 17], "cols": [1, 1 << 17]}
    spec = parse_spec(write_spec(tmp_path, space={**SPEC["space"], "dims": dims}))
    judge = Judge(monkeypatch, fault)
    gate = correctness._Gate(spec, CorrectnessPolicy(), judge)

    report = gate._beyond_32_bits(StageReport(extents.STAGE, "PASS", configs=("x",)))

    assert judge.ended == ["thinned out", "killed", "gave back"]
    assert (report.outcome, report.configs) == ("PASS", ("x",))
    assert report.not_applicable == ("f16 rows=65536 cols=32769",)
