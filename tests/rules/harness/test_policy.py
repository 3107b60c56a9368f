"""What tasks may change about the gates: checked when they are loaded, completed for the judge."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import math
import re

import pytest

from truth import distributions  # isort: skip
from kabuild.model.platform import CPU_SPEC
from kabuild.rule import AttributeProblem, PlatformSpec
from kabuild.rule.attr import Type
from rules.harness.policy import _POLICIES, KEYS, check_policies, gate_policy
from rules.harness.task import TASK_ATTRS
from rules.harness.terms import DISTRIBUTIONS


def attrs(**changes):
    """The attributes of a task that concern its policies."""
    return {
        "tolerance": {},
        "tf32": False,
        "distributions": (),
        **{gate: {} for gate in KEYS},
        **changes,
    }


def test_what_differs_by_platform_names_platforms_that_exist():
    kinds = {name: TASK_ATTRS[name].type for name in ("limits", "platform_configs")}
    assert set(kinds.values()) == {Type.BY_PLATFORM}


def test_the_distributions_are_those_of_the_judge():
    assert ("default", *distributions.CHANGES) == DISTRIBUTIONS
    assert not set(distributions.ON_REQUEST) & set(DISTRIBUTIONS)


@pytest.mark.parametrize(
    "sound",
    [
        {},
        {"tolerance": {"f16": {"atol": 0, "rtol": 1e-2}}},
        {"distributions": ("sorted",), "correctness": {"distributions": ["sorted", "zeros"]}},
        {"perf": {"processes": 4, "max_processes": 4, "half_width": 1}},
        {"unseen": {"cycles": 2}},
    ],
)
def test_a_sound_policy_is_accepted(sound):
    check_policies(attrs(**sound))


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ({"correctness": {"repeat": 3}}, ("correctness", "repeat"), "did you mean 'repeats'?"),
        ({"unseen": {"samples": 3}}, ("unseen", "samples"), "the gate 'perf' has it"),
        ({"perf": {"zzz": 3}}, ("perf", "zzz"), "known: tolerance"),
        ({"perf": {"samples": 1}}, ("perf", "samples"), "from 2 to"),
        ({"perf": {"samples": 2.0}}, ("perf", "samples"), "not an integer"),
        ({"perf": {"samples": True}}, ("perf", "samples"), "not an integer"),
        ({"perf": {"processes": 5, "max_processes": 4}}, ("perf", "max_processes"), "less than"),
        ({"perf": {"half_width": -1.0}}, ("perf", "half_width"), "a number from 0"),
        ({"perf": {"half_width": float("nan")}}, ("perf", "half_width"), "a number from 0"),
        ({"correctness": {"deterministic": 1}}, ("correctness", "deterministic"), "true or false"),
        ({"correctness": {"distributions": []}}, ("correctness", "distributions"), "is empty"),
        (
            {"correctness": {"distributions": ["zeros", "zeroes"]}},
            ("correctness", "distributions", 1),
            "did you mean 'zeros'?",
        ),
        (
            {"perf": {"distributions": ["spices"]}},
            ("perf", "distributions", 0),
            "did you mean 'spikes'?",
        ),
        ({"distributions": ("zeros",)}, ("distributions", 0), "is always tried"),
        ({"tolerance": {"f17": {}}}, ("tolerance", "f17"), "unknown dtype 'f17'"),
        ({"tolerance": {"f16": 1e-3}}, ("tolerance", "f16"), "is not a tolerance"),
        ({"tolerance": {"f16": {"tol": 1}}}, ("tolerance", "f16", "tol"), "has no 'tol'"),
        ({"tolerance": {"f16": {"atol": -1}}}, ("tolerance", "f16", "atol"), "a number from 0"),
        (
            {"perf": {"tolerance": {"f16": {"atol": "1"}}}},
            ("perf", "tolerance", "f16", "atol"),
            "a number from 0",
        ),
    ],
)
def test_a_mistake_is_found_with_its_place(change, path, words):
    with pytest.raises(AttributeProblem) as caught:
        check_policies(attrs(**change))

    assert caught.value.path == path
    assert words in f"{caught.value.message}; {caught.value.hint}"


NUMBERS = {(gate, name): kind for gate in KEYS for name, kind in KEYS[gate].items()
           if kind in {int, float}}  # fmt: skip


@pytest.mark.parametrize(("gate", "name"), NUMBERS)
def test_every_number_has_bounds(gate, name):
    """Whatever is refused is refused with the name of the number, and what is expected."""
    kind = NUMBERS[gate, name]
    for value in (-1, -1e-9, 10**25, 1e25, float("nan"), float("inf"), True, "1", None, [1]):
        with pytest.raises(AttributeProblem, match=f"'{name}' is ") as caught:
            check_policies(attrs(**{gate: {name: value}}))
        assert caught.value.path == (gate, name)
        assert len(caught.value.message) < 120
    default = getattr(_POLICIES[gate], name)
    check_policies(attrs(**{gate: {name: kind(default)}}))


@pytest.mark.parametrize(
    ("value", "said"),
    [(math.inf, "inf"), (math.nan, "nan"), (-math.inf, "-inf"), (10**25, "1e+25")],
)
def test_a_number_is_said_as_it_was_written(value, said):
    with pytest.raises(AttributeProblem, match=re.escape(f"'budget_seconds' is {said}, expected")):
        check_policies(attrs(perf={"budget_seconds": value}))


@pytest.mark.parametrize(
    ("gate", "name"),
    [("perf", "min_batch_ms"), ("perf", "memory_share"), ("unseen", "call_seconds")],
)
def test_a_number_that_has_to_be_more_than_nothing(gate, name):
    for value in (0, 0.0, -0.0, 1e-300):
        with pytest.raises(AttributeProblem, match=r"expected a number from 0\.001"):
            check_policies(attrs(**{gate: {name: value}}))


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("a", "a"), "declared twice"),
        (("",), "not a valid name"),
        (("a\x1b[31m",), "not a valid name"),
        (tuple(f"d{number}" for number in range(101)), "at most 100"),
    ],
)
def test_distributions_are_names(names, words):
    with pytest.raises(AttributeProblem, match=words):
        check_policies(attrs(distributions=names))
    check_policies(attrs(distributions=("sorted", "nearly_equal")))


def test_a_tolerance_that_accepts_everything_is_refused():
    for value in (1e25, 1001, float("inf"), float("nan"), True):
        with pytest.raises(AttributeProblem, match="expected a number from 0 to 1000"):
            check_policies(attrs(tolerance={"f32": {"rtol": value}}))
    check_policies(attrs(tolerance={"f32": {"rtol": 1, "atol": 0.0}}))


def test_what_holds_for_the_task_holds_for_each_gate():
    wide, own = {"atol": 1e-2, "rtol": 1e-2}, {"atol": 1e-4, "rtol": 1e-4}
    task = attrs(
        tolerance={"f16": wide, "f32": wide},
        perf={"samples": 3, "tolerance": {"f16": own}},
        distributions=("sorted",),
    )

    def policy(gate, declared=task):
        return gate_policy(declared, gate, CPU_SPEC)

    assert policy("unseen") == {"tolerance": {"f16": wide, "f32": wide}}
    assert policy("perf") == {"samples": 3, "tolerance": {"f16": own, "f32": wide}}
    assert policy("correctness")["distributions"] == [*DISTRIBUTIONS, "sorted"]
    assert policy("correctness", attrs()) == {}
    listed = {"distributions": ["default", "rows"]}
    assert policy("perf", attrs(correctness=listed)) == listed
    assert policy("perf", attrs(correctness=listed, perf={"distributions": ["rows"]})) == {
        "distributions": ["rows"]
    }
    assert policy("unseen", attrs(correctness=listed)) == {}


def test_tf32_widens_the_tolerance_of_f32_where_a_platform_computes_so():
    tensor_cores = PlatformSpec("tensor_cores", tf32=True)
    narrow, wide = {"atol": 1e-5, "rtol": 2e-3}, {"atol": 1e-3, "rtol": 2e-3}
    task = attrs(tf32=True, tolerance={"f16": narrow, "f32": narrow})

    assert gate_policy(task, "perf", CPU_SPEC)["tolerance"]["f32"] == narrow
    assert gate_policy(task, "perf", tensor_cores) == {"tolerance": {"f16": narrow, "f32": wide}}
    assert gate_policy(attrs(tf32=True), "unseen", tensor_cores) == {
        "tolerance": {"f32": {"atol": 1e-3, "rtol": 1e-3}}
    }
    assert gate_policy(attrs(), "unseen", tensor_cores) == {}
