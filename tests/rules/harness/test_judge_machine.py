"""What is noted of the host while it is measured, and what is not there to be read."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from perf.machine import reading

CPU = "sys/devices/system/cpu"


def host(root, **files):
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return reading(root)


def test_this_machine_can_be_read():
    found = reading()

    assert set(found) == {"load", "mhz", "throttled", "stolen_ms", "waiting_ms"}
    assert len(found["load"]) == 3
    assert found["mhz"] is None or 0 < found["mhz"][0] <= found["mhz"][1]


def test_what_a_machine_does_not_show_is_none(tmp_path):
    found = reading(tmp_path)

    assert found.pop("load")
    assert found == {"mhz": None, "throttled": None, "stolen_ms": None, "waiting_ms": None}


def test_every_processor_counts(tmp_path):
    files = {
        f"{CPU}/cpu0/cpufreq/scaling_cur_freq": "3500000\n",
        f"{CPU}/cpu1/cpufreq/scaling_cur_freq": "1200000\n",
        f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "3\n",
        f"{CPU}/cpu0/thermal_throttle/package_throttle_count": "1\n",
        f"{CPU}/cpu1/thermal_throttle/core_throttle_count": "2\n",
        "proc/stat": "cpu  1 2 3 4 5 6 7 250 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n",
        "proc/pressure/cpu": "some avg10=1.41 avg60=1.7 avg300=2.8 total=4613534\nfull total=7\n",
    }
    found = host(tmp_path, **files)

    assert found["mhz"] == [1200.0, 3500.0]
    assert found["throttled"] == 6
    assert found["stolen_ms"] == 2500.0
    assert found["waiting_ms"] == 4613.534


def test_a_frequency_that_nobody_measures_is_none(tmp_path):
    lines = "flags : fpu {}\ncpu MHz : 2596.122\ncpu MHz : 2400.000\n"

    assert host(tmp_path, **{"proc/cpuinfo": lines.format("vme")})["mhz"] is None
    measured = host(tmp_path, **{"proc/cpuinfo": lines.format("aperfmperf")})
    assert measured["mhz"] == [2400.0, 2596.122]


def test_files_that_make_no_sense_are_as_good_as_none(tmp_path):
    files = {
        f"{CPU}/cpu0/cpufreq/scaling_cur_freq": "<unknown>\n",
        f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "\n",
        "proc/stat": "cpu 1 2\n",
        "proc/pressure/cpu": "",
    }
    found = host(tmp_path, **files)

    assert [found[name] for name in ("mhz", "throttled", "stolen_ms", "waiting_ms")] == [None] * 4
