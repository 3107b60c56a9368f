"""The time of a task's own check, by which batches are limited."""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="arg-type"

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from base.spec import parse_spec
from judging_doubles import REFERENCE, write_spec
from perf.checking import Checking
from truth.assessment import Call
from truth.oracle import Oracle, TaskFault


def checked(folder, body):
    """The time of a check that does ``body``, and how often a call was drawn for it."""
    check = f"\n\ndef check(inputs, outputs, expected):\n    {body}\n" if body else ""
    spec = parse_spec(write_spec(folder, REFERENCE + check, gate="perf"))
    oracle, config, drawn = Oracle(spec.reference, spec.signature), spec.configs[0], []

    def draw():
        inputs = oracle.inputs(config, torch.Generator().manual_seed(0))
        drawn.append(Call(config, "default", inputs, oracle.expected(config, inputs)))
        return drawn[-1]

    checking = Checking(SimpleNamespace(oracle=oracle))
    return [checking.seconds(config, draw) for _ in range(3)], len(drawn)


def test_it_is_that_of_right_outputs_in_their_own_dtype(tmp_path):
    body = "import time; assert outputs['y'].dtype == inputs['x'].dtype; time.sleep(0.02)"
    seconds, drawn = checked(tmp_path, body)

    assert 0.02 < seconds[0] < 10
    assert (set(seconds), drawn) == ({seconds[0]}, 1)


def test_the_first_check_of_a_process_may_take_longer(tmp_path):
    body = "import time, pathlib; p = pathlib.Path(__file__ + '.ran'); time.sleep(not p.exists())"
    (first, *_), _ = checked(tmp_path, f"{body}; p.touch()")

    assert first < 1.0


def test_without_a_check_nothing_is_drawn(tmp_path):
    assert checked(tmp_path, "") == ([0.0] * 3, 0)


def test_a_check_that_raises_on_right_outputs_is_the_task_s_fault(tmp_path):
    with pytest.raises(TaskFault, match="no luck"):
        checked(tmp_path, "raise ValueError('no luck')")
