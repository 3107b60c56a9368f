"""``peaks.toml``: what ships is what makers publish, and each mistake has its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from kabuild.base.errors import LoadError, Position, Reason
from kabuild.loading.peaks_file import read_peaks
from kabuild.loading.platform_index import PlatformIndex
from kabuild.loading.roots import PEAKS_FILE

TOY = """\
[t1]
gpu        = "Toy 9"
processors = 4
clock_mhz  = 1000
memory_gbs = 32
l1_kib     = 1
l2_mib     = 0.5
launch_us  = 1
clock      = { sectors = 4, f32 = 64 }
"""
FITTED = f"""{TOY}\
[t1.fitted]
threads    = 64
blocks     = 2
shared_kib = 8
ns.launch  = 1000
ns.memory  = 0.5
ns.cache   = 1
ns.sectors = 1
ns.shared  = 1
ns.instructions = 1
ns.special = 1
ns.atomics = 1
ns.trips   = 1
ns.barriers = 1
ns.exchanges = 1
"""


def read(folder: Path, text: str) -> object:
    (folder / PEAKS_FILE).write_text(text)
    return read_peaks(folder, "toy", ("t1", "t2"))


def test_a_right_file_is_read_and_none_is_empty(tmp_path: Path) -> None:
    assert read_peaks(tmp_path, "toy", ("t1",)) == {}
    assert read(tmp_path, TOY)["t1"]["clock"] == {"sectors": 4, "f32": 64}  # type: ignore[index]
    assert read(tmp_path, FITTED)["t1"]["fitted"]["ns"]["memory"] == 0.5  # type: ignore[index]


@pytest.mark.parametrize(
    ("before", "after", "line", "message"),
    [
        ("[t1]", "[t3]", 1, "unknown architecture 't3'"),
        ("[t1]", "t2 = 7\n[t1]", 1, "'t2' is the integer 7, expected a table"),
        ("l2_mib ", "l2_mb ", 7, "unknown key 'l2_mb'"),
        ("launch_us  = 1\n", "", 1, "'t1' has no 'launch_us'"),
        ("processors = 4", "processors = 0", 3, "'processors' is 0, expected a number above 0"),
        ("clock_mhz  = 1000", "clock_mhz = true", 4, "expected a number above 0"),
        ("f32 = 64", 'f32 = "64"', 9, "expected a number above 0"),
        ("f32 = 64", "f33 = 64", 9, "unknown key 'f33'"),
        ('"Toy 9"', "9", 2, "'gpu' is the integer 9, expected a name"),
        ("{ sectors = 4, f32 = 64 }", "4", 9, "'clock' is the integer 4, expected a table"),
        ("blocks     = 2\n", "", 10, "'fitted' has no 'blocks'"),
        ("blocks     = 2", "blocks     = 0", 12, "'blocks' is 0, expected a number above 0"),
        ("ns.trips ", "ns.trip ", 22, "unknown key 'trip'"),
        ("ns.shared  = 1", "ns.shared  = -1", 18, "'shared' is -1, expected a number above 0"),
    ],
)
def test_a_mistake_has_its_line(
    tmp_path: Path, before: str, after: str, line: int, message: str
) -> None:
    assert before in FITTED
    with pytest.raises(LoadError) as caught:
        read(tmp_path, FITTED.replace(before, after))

    assert message in caught.value.message
    assert caught.value.reason in {Reason.BAD_ATTRIBUTE, Reason.UNKNOWN_KEY}
    assert caught.value.position == Position(f"toy/{PEAKS_FILE}", line)


@pytest.mark.parametrize(
    ("arch", "f32", "f64", "f16"), [("sm_80", 19.5, 9.7, 78.0), ("sm_90", 66.9, 33.5, 133.8)]
)
def test_what_ships_agrees_with_the_published_throughput(
    arch: str, f32: float, f64: float, f16: float
) -> None:
    """Operations a second: processors, clock and operations of a clock."""
    peaks = PlatformIndex.of(None).peaks()[arch]

    for kind, published in (("f32", f32), ("f64", f64), ("f16", f16)):
        found = peaks["processors"] * peaks["clock_mhz"] * peaks["clock"][kind] / 1e6
        assert found == pytest.approx(published, rel=0.01)
