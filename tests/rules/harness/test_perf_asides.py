"""Timed processes are asked other things too, so that what is right must stay right."""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="arg-type, list-item"

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from base.program import CandidateFault
from base.spec import parse_spec
from correctness import edges
from judging_doubles import REFERENCE, judge, softmax, write_spec
from perf.asides import LEAST, Asides
from terms.perf import PerfPolicy
from terms.policy import DISTRIBUTIONS
from terms.reasons import Reason

TIMED = {64, 257}  # columns of the configs
PILOT = 6  # calls before any process is timed
JUDGE = {"assessor": None, "call": print}
PROCESSES = 3  # that are timed, of each side


def after(calls, kernel):
    """Honest for so many calls, then ``kernel``."""
    made: list[None] = []

    def program(x, y, scale, **dims):
        made.append(None)
        (softmax if len(made) <= calls else kernel)(x, y, scale=scale, **dims)

    return program


def trusting(x, y, scale, **_):
    powers = torch.exp(x.float() * scale)
    y.copy_(powers / powers.sum(-1, keepdim=True))


def trusting_when_timed(x, y, scale, cols, **dims):
    kernel = trusting if cols in TIMED else softmax
    kernel(x, y, scale=scale, cols=cols, **dims)


def without_a_tail(x, y, scale, cols, **dims):
    softmax(x, y, scale, **dims)
    if cols not in TIMED:
        y[:, cols // 2 :] = 0


@pytest.mark.parametrize(
    ("kernel", "where"),
    [
        (trusting_when_timed, "in an untimed call in a timed batch of"),
        (without_a_tail, "in an untimed call between timed batches of"),
    ],
)
def test_what_starts_late_is_found_among_timed_calls(tmp_path, kernel, where):
    verdict, _, _ = judge(tmp_path, after(PILOT, kernel))

    assert verdict.outcome == "FAIL"
    assert verdict.reason in {"NON_FINITE", "WRONG_RESULT"}
    assert where in verdict.detail


def test_who_is_right_for_all_values_passes(tmp_path):
    def chooses(x, y, scale, **dims):
        kernel = trusting if x.abs().max() * abs(scale) < 20 else softmax
        kernel(x, y, scale=scale, **dims)

    verdict, samples, _ = judge(tmp_path, after(20, chooses))

    assert verdict.outcome == "PASS", verdict.detail
    for config in samples["configs"].values():  # and the asides are in no figure
        assert [len(process) for process in config["candidate"]] == [2, 2, 2]


def crashes(x, y, scale, **dims):
    if x.abs().max() > 40:
        raise CandidateFault(Reason.CRASH, "signal 11")
    trusting(x, y, scale, **dims)


@pytest.mark.parametrize("baseline", [trusting, crashes])
def test_nobody_has_to_be_right_where_the_baseline_is_not(tmp_path, baseline):
    verdict, _, _ = judge(tmp_path, trusting, baseline=baseline)

    assert verdict.outcome == "PASS", verdict.detail


def test_places_values_and_sizes_differ_from_judging_to_judging(tmp_path):
    def order(draw):
        seen = []

        def records(x, y, scale, **_):
            seen.append((tuple(x.shape), x.double().sum().item()))
            softmax(x, y, scale)

        judge(tmp_path, records, draw=draw, max_slots=3, budget_seconds=600.0)
        return seen

    first, again = order(1), order(1)
    differing = [one for one, other in zip(first, again, strict=True) if one != other]
    assert [shape for shape, _ in first] == [shape for shape, _ in again]
    assert len(differing) <= PROCESSES  # in each, a call that no draw tells proves itself
    assert len({str(order(draw)) for draw in range(1, 6)}) == 5


@pytest.mark.parametrize(("abi", "most"), [("python", 1), ("hip", 2)])
def test_what_compiles_for_each_size_gets_other_sizes_once_in_a_process(
    tmp_path, monkeypatch, abi, most
):
    spec = parse_spec(write_spec(tmp_path, REFERENCE, gate="perf"))
    spec = replace(spec, candidate=replace(spec.candidate, abi=abi, platform="cuda:sm_90"))
    asides = Asides(SimpleNamespace(assessor=None), spec, PerfPolicy(), draw=7)
    size = SimpleNamespace(config=spec.configs[0], calls=["a", "b", "c"], slack={})
    monkeypatch.setattr(asides, "_sizes", [size])

    asked = [
        [config.name for config in spec.configs if asides.between(number, config)]
        for number in range(1, 30)
    ]

    assert {len(names) for names in asked} == {most}
    assert len({str(names) for names in asked}) == 3 - most  # any config's turn, if only one's


@pytest.mark.parametrize(
    ("seconds", "elements", "extent"),
    [(1e-3, sys.maxsize, 8192), (0.01, 5120, 512), (50.0, 1, 512)],
)
def test_other_sizes_are_small_for_an_oracle_that_takes_long(
    tmp_path, monkeypatch, seconds, elements, extent
):
    """It may go through the elements one by one; the smallest config has 512."""
    spec = parse_spec(write_spec(tmp_path, REFERENCE, gate="perf"))
    spec = replace(spec, platform="cuda:sm_90")
    monkeypatch.setattr(edges, "edges", lambda ground, *_: [ground])
    oracle = SimpleNamespace(structured=False)
    judge = SimpleNamespace(host_seconds=lambda _: seconds / 4, oracle=oracle, **JUDGE)
    asides = Asides(judge, spec, PerfPolicy(), draw=7)
    monkeypatch.setattr(asides._checking, "seconds", lambda *_: seconds * 3 / 4)
    (ground,) = map(vars, asides._other_sizes())

    assert asides._affordable_elements() == elements
    assert (ground["elements"], ground["extent"]) == (4096, extent)


@pytest.mark.parametrize(("seconds", "usable"), [(4.0, True), (6.0, False)])
def test_a_size_for_which_the_oracle_takes_too_long_is_left_out(
    tmp_path, monkeypatch, seconds, usable
):
    """However long the baseline takes: compilers may be slow for each size."""
    spec = parse_spec(write_spec(tmp_path, REFERENCE, gate="perf"))
    baseline = SimpleNamespace(kill=lambda: None)
    judge = SimpleNamespace(host_seconds=lambda _: seconds, baseline=baseline, **JUDGE)
    asides = Asides(judge, spec, PerfPolicy(), draw=7)
    monkeypatch.setattr(asides, "_found", lambda config, _: [(SimpleNamespace(), {})])
    monkeypatch.setattr(asides, "_preferred", lambda _: [])
    monkeypatch.setattr(asides, "_other_sizes", lambda: list(spec.configs))
    asides.prepare()

    assert [size.config for size in asides._sizes] == list(spec.configs) * usable


@pytest.mark.parametrize(
    ("listed", "odd"),
    [
        (DISTRIBUTIONS, DISTRIBUTIONS[1:]),
        (("default",), ()),
        (("rows", "own", "default"), ("rows",)),
    ],
)
def test_untimed_values_are_those_that_the_task_admits(tmp_path, monkeypatch, listed, odd):
    spec = parse_spec(write_spec(tmp_path, REFERENCE, gate="perf"))
    baseline = SimpleNamespace(kill=lambda: None)
    judge = SimpleNamespace(host_seconds=lambda _: 0.0, baseline=baseline, **JUDGE)
    asides = Asides(judge, spec, PerfPolicy(distributions=listed), draw=7)
    asked = []

    def found(_, kinds):
        asked.append(tuple(kinds))
        return []

    monkeypatch.setattr(asides, "_found", found)
    monkeypatch.setattr(asides, "_preferred", lambda _: list(odd))
    monkeypatch.setattr(asides, "_other_sizes", lambda: list(spec.configs))
    asides.prepare()

    for config in spec.configs:  # of nothing but usual values, no batch is worth its time
        assert asides.batches(config, 2) == (LEAST + 1) // 2 * bool(odd)
        assert bool(asides.batches(config, 6)) is bool(odd)

    small = len(asides._smallest())
    assert asked[:small] == [("default", *odd)] * small
    for kinds in asked[small:]:
        assert kinds
        assert set(kinds) <= {"default", *odd}


@pytest.mark.parametrize("listed", [("default",), ("own",), ("rows", "own")])
def test_a_task_may_admit_few_values_or_none_of_ours(tmp_path, listed):
    verdict, _, _ = judge(tmp_path, softmax, distributions=list(listed))

    assert verdict.outcome == "PASS", verdict.detail


def test_on_the_processor_other_sizes_are_as_small_whatever_the_oracle_takes(tmp_path, monkeypatch):
    spec = parse_spec(write_spec(tmp_path, REFERENCE, gate="perf"))
    monkeypatch.setattr(edges, "edges", lambda ground, *_: [ground])
    for abi, elements in (("hip", 4096), ("python", 1024)):
        own = replace(spec, candidate=replace(spec.candidate, abi=abi))
        oracle = SimpleNamespace(structured=False)
        judging = SimpleNamespace(host_seconds=lambda _: 1e-9, oracle=oracle, **JUDGE)
        (ground,) = map(vars, Asides(judging, own, PerfPolicy(), draw=7)._other_sizes())
        assert ground["elements"] == elements


def test_calls_to_which_the_oracle_has_no_answer_are_left_out():
    """Even where the baseline gives the same NaN, which is no error."""
    call = SimpleNamespace(config="c")
    right = SimpleNamespace(
        measures=("y",),
        sampled={},
        together=lambda _: 1,
        measured=lambda *_: torch.zeros(1, 2).double(),
        allowed=lambda *_: 1.0,
        measured_exactly=lambda _: frozenset(),
    )
    asides = Asides(SimpleNamespace(assessor=right), None, PerfPolicy(), 1)
    for defined in (True, False):
        right.defined = lambda _, defined=defined: defined
        assert [found for found, _ in asides._looked_at([(call, {})])] == [call] * defined
