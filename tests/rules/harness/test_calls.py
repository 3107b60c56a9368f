"""Tasks with a call: each form's right solution passes, and each wrong one has its reason."""

# mypy: allow-untyped-defs, allow-untyped-calls

import json
import textwrap

import pytest
from admission import gate as admission
from base.spec import parse_spec
from call_forms import FORMS, WRONG
from call_specs import attributes, judged, spec_of
from perf import gate as perf

from kabuild.rule import AttributeProblem
from rules.harness.signature import read_signature


@pytest.mark.parametrize("form", FORMS)
def test_right_solution_passes(launcher, tmp_path, form):
    verdict = judged(launcher, tmp_path, form)

    assert verdict.outcome == "PASS", verdict.detail


@pytest.mark.parametrize("case", WRONG, ids=" ".join)
def test_wrong_solution_is_refused(launcher, tmp_path, case):
    verdict = judged(launcher, tmp_path, case[0], WRONG[case])

    assert verdict.reason == case[1], verdict.detail


def test_result_of_one_element_is_admitted(launcher, tmp_path):
    """Its mean and its median are the result itself: nobody could tell these from right."""
    spec = spec_of(tmp_path, FORMS["loss"], "")
    brief = "Cross entropy of rows of logits with integer targets, weighted by class, as a mean."
    strict = {"f32": {"atol": 1e-6, "rtol": 1e-6}}  # than what half-precision inputs give
    policy = {"samples": 2, "expert": False, "brief": brief, "declared": spec["configs"]}
    policy["tolerance"] = strict

    verdict = admission.run(parse_spec({**spec, "gate": "admission", "policy": policy}), launcher)

    assert verdict.outcome == "PASS", verdict.detail


def test_inputs_that_are_declared_in_half_precision_are_compared_as_such(launcher, tmp_path):
    """In float16 they would hardly differ from bfloat16, and the results not at all."""
    form = {
        "inputs": {"x": "bf16[n]"},
        "outputs": {"y": "bf16[n]"},
        "dims": {"n": "1..64"},
        "configs": [{"n": 48}],
        "call": "y = twice(x)",
        "reference": """
            import torch
            def inputs(config, generator):
                x = 2e-5 * torch.randn(config["n"], generator=generator)
                return {"x": x.to(torch.bfloat16)}
            def reference(x, **_):
                return {"y": 1e5 * x.sin()}
            """,
        "right": "def twice(x): return 1e5 * x.sin()",
    }
    spec = spec_of(tmp_path, form, "")
    policy = {"samples": 1, "expert": False, "brief": "word " * 20, "declared": spec["configs"]}

    verdict = admission.run(parse_spec({**spec, "gate": "admission", "policy": policy}), launcher)

    assert verdict.outcome == "PASS", verdict.detail


@pytest.mark.parametrize(("keeps", "reason"), [("* 0", ""), ("* 1", "SEEDS_IGNORED")])
def test_memory_that_is_overwritten_may_hold_the_same(launcher, tmp_path, keeps, reason):
    """What an updated input held may be zero each time, unless results depend on it."""
    form = {
        "inputs": {"x": "T[n]", "held": "T[n]"},
        "outputs": {},
        "updates": ("held",),
        "dims": {"n": "1..64"},
        "configs": [{"n": 48}],
        "call": "add(x, held)",
        "reference": f"""
            import torch
            def inputs(config, generator):
                n = config["n"]
                return {{
                    "x": torch.randn(n, generator=generator),
                    "held": torch.zeros(n),
                }}
            def reference(x, held, **_):
                return {{"held": x + held {keeps}}}
            """,
        "right": f"def add(x, held): held.copy_(x + held {keeps})",
    }
    spec = spec_of(tmp_path, form, "")
    policy = {"samples": 1, "expert": False, "brief": "word " * 20, "declared": spec["configs"]}

    verdict = admission.run(parse_spec({**spec, "gate": "admission", "policy": policy}), launcher)

    found = {case["check"]: case["reason"] for case in verdict.cases}
    assert found["SEEDS_IGNORED"] == reason, verdict.detail
    assert found["INPUT_IGNORED"] == "", verdict.detail


def test_constant_state_is_not_admitted(launcher, tmp_path):
    fixed = str(FORMS["linear"]["reference"]).replace("def state(", "def drawn(")
    fixed += """
        def state(config, generator):
            return drawn(config, torch.Generator().manual_seed(1))
        """
    spec = spec_of(tmp_path, {**FORMS["linear"], "reference": fixed}, "")
    policy = {"samples": 1, "expert": False, "brief": "word " * 20, "declared": spec["configs"]}

    verdict = admission.run(parse_spec({**spec, "gate": "admission", "policy": policy}), launcher)

    assert (verdict.reason, "the state is the same" in verdict.detail) == ("SEEDS_IGNORED", True)


@pytest.mark.parametrize("form", ["linear", "norm"])
def test_calls_are_timed(launcher, tmp_path, form):
    """Also those with a state, which is another one in each round, and with updates."""
    policy = {"budget_seconds": 1.0, "max_processes": 3, "min_batch_ms": 2.0}
    spec = {**spec_of(tmp_path, FORMS[form], ""), "gate": "perf", "policy": policy}

    verdict = perf.run(parse_spec(spec), launcher)

    assert verdict.outcome == "PASS", verdict.detail


LONG = """
import time


class Model(Model):
    def forward(self, x):
        until = time.perf_counter() + 0.003
        while time.perf_counter() < until:
            pass
        return super().forward(x)
"""


@pytest.mark.parametrize(("more", "alone"), [("", False), (LONG, True)])
def test_long_calls_are_timed_one_by_one(launcher, tmp_path, more, alone):
    """A batch of several has the inputs of all, and one computation could solve them together."""
    form = {**FORMS["linear"], "right": textwrap.dedent(str(FORMS["linear"]["right"])) + more}
    policy = {"budget_seconds": 1.0, "max_processes": 3, "max_slots": 8}
    spec = {**spec_of(tmp_path, form, ""), "gate": "perf", "policy": policy}

    verdict = perf.run(parse_spec(spec), launcher)

    ((_, sides),) = json.loads(verdict.files["samples.json"])["configs"].items()
    slots = {sample["slots"] for found in sides.values() for process in found for sample in process}
    assert (slots == {1}) is alone, slots


def signature_with(name):
    """The signature of a task that has a state tensor called ``name``."""
    return read_signature(attributes({**next(iter(FORMS.values())), "state": {name: "T[4]"}}))


@pytest.mark.parametrize("name", ["conv.weight", "0.weight", "0"])
def test_a_state_tensor_is_called_as_in_its_module(name):
    assert [tensor.name for tensor in signature_with(name).state] == [name]


@pytest.mark.parametrize("name", ["", ".weight", "0..weight", "w-1", "../w"])
def test_other_names_of_state_tensors_are_refused(name):
    with pytest.raises(AttributeProblem, match="is not a valid name of a state tensor"):
        signature_with(name)
