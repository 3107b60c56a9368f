"""Which vector instructions a processor is said to have."""

from __future__ import annotations

from pathlib import Path

import pytest

from kabuild.execution.host import instructions

V3 = "sse4_2 avx avx2 fma f16c bmi1 bmi2"
V4 = "avx512f avx512bw avx512cd avx512dq avx512vl"


@pytest.mark.parametrize(
    ("text", "level"),
    [
        (f"processor\t: 0\nflags\t\t: {V3} {V4}\n", "x86-64-v4"),
        (f"flags : {V3} avx512f\n", "x86-64-v3"),
        ("flags : sse4_2 avx\n", ""),
        ("Features : asimd sve\n", ""),
    ],
)
def test_it_is_the_best_level_that_is_whole(tmp_path: Path, text: str, level: str) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(text)

    assert instructions(cpuinfo) == level


def test_a_kernel_that_does_not_say(tmp_path: Path) -> None:
    assert instructions(tmp_path / "absent") == ""
