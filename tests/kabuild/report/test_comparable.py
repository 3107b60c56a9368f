"""Whether two evaluations may be compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kabuild.report.beside import remarks, told_apart
from tests.kabuild.report.test_page import evaluation

CPU = {"name": "cpu", "arch": "x86_64", "device": "AMD EPYC", "cores": "2"}
H200 = {"name": "cuda", "arch": "sm_90", "device": "NVIDIA H200", "driver": "580"}


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (CPU, []),
        ({**CPU, "cores": "64"}, []),
        ({**CPU, "device": "Intel Xeon"}, ["device: AMD EPYC and Intel Xeon"]),
        ({"name": "cpu", "arch": "x86_64"}, ["device: AMD EPYC and unknown"]),
        (
            H200,
            [
                "platform: cpu and cuda",
                "arch: x86_64 and sm_90",
                "device: AMD EPYC and NVIDIA H200",
            ],
        ),
    ],
)
def test_speedups_of_different_devices_are_told_apart(
    other: dict[str, str], told: list[str]
) -> None:
    assert told_apart(CPU, other) == told


def test_what_else_differs_is_remarked() -> None:
    one = replace(evaluation("a"), platform=H200, request={"policy": "aka", "salt": "1"})
    other = replace(
        one, platform={**H200, "driver": "590"}, request={"policy": "geomean"}, kabuild="0.2"
    )
    assert remarks(one, one) == []
    assert remarks(one, other) == [
        "driver: 580 and 590",
        "policy: aka and geomean",
        "salt: 1 and unknown",
        "kabuild: 0.1 and 0.2",
    ]
