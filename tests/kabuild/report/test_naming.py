"""Evaluations side by side have names that tell them apart."""

from __future__ import annotations

import pytest

from kabuild.report.beside import by_agent, named_apart
from kabuild.report.evaluation import Evaluation

CPU = {"name": "cpu", "device": "AMD EPYC", "arch": "x86_64"}
OTHER_CPU = {**CPU, "device": "Intel Xeon"}
H200 = {"name": "cuda", "arch": "sm_90", "device": "NVIDIA H200"}
NO_DEVICE = {"name": "rocm", "arch": "gfx942"}


def of(
    agent: str | None, platform: dict[str, str] = CPU, source: str = "", name: str = "run_1"
) -> Evaluation:
    """What was read from a file, or carried out where there is no source."""
    request = {} if agent is None else {"agent": agent}
    return by_agent(Evaluation(name, "0.1", platform, request, ()), source)


@pytest.mark.parametrize(
    ("evaluations", "names"),
    [
        ([of("//a:expert", H200, "x.kab")], ["expert"]),
        ([of("")], ["solution"]),
        ([of(None)], ["run_1"]),
        ([of("//a:expert"), of("//a:tuner")], ["expert", "tuner"]),
        (
            [of("//a:expert"), of("//a:tuner"), of("//a:expert", H200)],
            ["expert on cpu", "tuner on cpu", "expert on NVIDIA H200"],
        ),
        (
            [of("//a:x"), of("//a:x", OTHER_CPU), of("//a:x", NO_DEVICE)],
            ["x on cpu: AMD EPYC", "x on cpu: Intel Xeon", "x on rocm:gfx942"],
        ),
        (
            [of("//a:x", source="a/x.kab"), of("//a:x", source="b/x.kab"), of("//a:x")],
            ["x (a/x.kab)", "x (b/x.kab)", "x"],
        ),
        ([of("//a:x"), of("//b:x"), of("//c:x (2)")], ["x", "x (3)", "x (2)"]),
    ],
)
def test_names_say_what_differs_and_no_more(
    evaluations: list[Evaluation], names: list[str]
) -> None:
    assert [item.name for item in named_apart(evaluations)] == names
