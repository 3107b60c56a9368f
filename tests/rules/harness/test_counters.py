"""Profilers in real sandboxes; a script stands for each, as the real ones need a GPU.

What Nsight Compute itself counts is looked at on a GPU by ``tests/device/profilers.py``.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from alone.patience import Patience
from base.program import Abi, CandidateFault, MachineFault
from base.spec import Spec, SpecError, parse_spec
from counters import gate, nsight, rocprof
from counters.launches import MOST_LAUNCHES, Profiled
from counters.nsight import FIGURES, Nsight, read
from counters.rocprof import GROUPS
from judging_doubles import write_spec
from profiler_doubles import DONE, READY, TABLE, TARGET, TWO, Profiling
from runners.control_block import ControlBlock
from runners.launcher import Launcher
from terms.reasons import Reason
from terms.verdict import Verdict

from kabuild.report.counters import render_counters


@pytest.fixture
def profiling(tmp_path: Path) -> Iterator[Profiling]:
    with Launcher.start() as launcher:
        yield Profiling(launcher, tmp_path)


def test_the_launches_of_a_call_are_read(profiling: Profiling) -> None:
    found = profiling.profile(profiling.nsight(TWO))

    assert (found.whole, found.fault) == (True, None)
    assert [launch.to_json() for launch in found.launches] == [
        {
            "kernel": name,
            "grid": [40, 2, 1],
            "block": [256, 1, 1],
            "figures": {"memory_read_bytes": 1024.5, "time_ns": time},
        }
        for name, time in (("scale<float>", 100.0), ("twice", 50.0))
    ]


def test_only_counters_that_the_device_has_are_asked_for(profiling: Profiling) -> None:
    """A figure that is a sum needs all of its parts, so a part alone is no figure."""
    found = profiling.profile(profiling.nsight(f'{READY}; echo "$metrics"; exit 1'))

    assert found.fault is not None
    asked = found.fault.detail.splitlines()[-1].split(",")
    of_device = [name for name in asked if not name.startswith("launch__")]
    assert of_device == [
        "dram__bytes_read.sum",
        "gpu__time_duration.sum",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum",
    ]
    assert "launch__registers_per_thread" in asked
    row = '"0","1","k","(1, 1, 1)","(1, 1, 1)","7","2"'
    atoms = FIGURES["global_atomic_sectors"]
    head = f'"ID","Process ID","Kernel Name","Block Size","Grid Size","{atoms[0]}","{atoms[1]}"'
    (launch,) = read(f"{head}\n{row}")
    assert launch.figures == {"global_atomic_sectors": 9.0}
    (launch,) = read(f"{head.replace(atoms[1], 'other')}\n{row}")
    assert launch.figures == {}


def test_the_call_is_laid_out_for_the_process(profiling: Profiling) -> None:
    look = 'test -s "$2" && test "$(wc -c < "$3")" = 4000 && test "$4" = /candidate/kernel.so'

    found = profiling.profile(profiling.nsight(f"{look} && {{ {TWO}; }}"))

    assert len(found.launches) == 2


def test_outputs_have_places_of_their_own(profiling: Profiling) -> None:
    """A Triton program's process lays them out in one piece of memory."""
    profiling.profile(profiling.nsight(TWO))

    block = ControlBlock.decode((profiling.folder / "call/block").read_bytes())

    assert [(one.name, one.first, one.size) for one in block.inputs] == [("x", 0, 4000)]
    assert [(one.name, one.first, one.size) for one in block.outputs] == [("y", 0, 4000)]
    assert block.sizes == (4000, 4000)


def test_a_call_with_more_launches_than_are_counted_says_so(profiling: Profiling) -> None:
    many = f"{READY}; begin; for i in $(seq 0 {MOST_LAUNCHES}); do launch $i k 1; done; {DONE}"

    found = profiling.profile(profiling.nsight(many))

    assert len(found.launches) == MOST_LAUNCHES
    assert (found.whole, found.fault) == (False, None)


def test_a_call_that_launches_nothing_is_whole(profiling: Profiling) -> None:
    none = f'{READY}; echo "==WARNING== No kernels were profiled." > "$log"; {DONE}'

    found = profiling.profile(profiling.nsight(none))

    assert (list(found.launches), found.whole, found.fault) == ([], True, None)


@pytest.mark.parametrize(
    ("body", "reason", "said"),
    [
        ("echo kabuild-alone fault launch 801", "LAUNCH_ERROR", "801"),
        ("echo kabuild-alone fault missing_entry 0", "MISSING_ENTRY", "lacks its entry"),
        ("echo a.py:3; echo kabuild-alone fault exception 0", "EXCEPTION", "a.py:3"),
        ("echo kabuild-alone fault memory 0", "OUT_OF_MEMORY", "ran out of memory"),
        ("echo oh dear; kill -9 $$", "CRASH", "oh dear"),
        (f'begin; echo \'"0","1"\' >> "$log"; {DONE}', "PROTOCOL_VIOLATION", "spoiled the log"),
        (DONE, "PROTOCOL_VIOLATION", "spoiled the log"),
        (f'mkfifo "$log"; {DONE}', "TIMEOUT", "gave no answer within 2 s"),
        (f"begin; launch 0 k 5; {DONE}; sleep 100", "TIMEOUT", "gave no answer within 2 s"),
        ('echo "==ERROR== Unknown\x1b[2J" > "$log"; exit 1', "CRASH", "==ERROR== Unknown?[2J"),
    ],
)
def test_a_call_that_fails_is_the_candidates(
    profiling: Profiling, body: str, reason: str, said: str
) -> None:
    found = profiling.profile(profiling.nsight(f"{READY}; {body}"), lambda: 2.0)

    assert not found.whole
    assert found.fault is not None
    assert found.fault.reason is Reason(reason)
    assert said in found.fault.detail


def test_a_call_that_never_ends_is_ended(profiling: Profiling) -> None:
    found = profiling.profile(profiling.nsight(f"{READY}; sleep 100"), lambda: 1.0)

    assert found.fault is not None
    assert found.fault.reason is Reason.TIMEOUT


def test_without_time_nothing_is_called(profiling: Profiling) -> None:
    def none() -> float:
        raise CandidateFault(Reason.TIMEOUT, "no time is left")

    found = profiling.profile(profiling.nsight(TWO), none)

    assert (list(found.launches), found.whole) == ([], False)
    assert found.fault is not None


@pytest.mark.parametrize("ready", [READY, "true"])
@pytest.mark.parametrize("end", [DONE, "echo kabuild-alone fault launch 719"])
@pytest.mark.parametrize(
    ("error", "advice"),
    [
        ("ERR_NVGPUCTRPERM - The user does not", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("Profiling failed because a driver resource was unavailable", "dcgmi profile --pause"),
    ],
)
def test_counters_that_the_driver_refuses_are_the_machines_fault(
    profiling: Profiling, ready: str, end: str, error: str, advice: str
) -> None:
    """And it says how to get them, however far the candidate has come."""
    body = f'{ready}; echo "==ERROR== {error}" > "$log"; {end}'

    with pytest.raises(MachineFault, match=advice):
        profiling.profile(profiling.nsight(body))


def test_a_profiler_that_fails_is_the_machines_fault(profiling: Profiling) -> None:
    """Its log has what its output does not say."""
    error = '==ERROR== Failed to profile "k" in process 7\n==WARNING== No kernels were profiled.'

    with pytest.raises(MachineFault, match="counted nothing: ==ERROR== Failed to profile"):
        profiling.profile(profiling.nsight(f"{READY}; echo '{error}' > \"$log\"; {DONE}"))


@pytest.mark.parametrize("abi", ["hip", "python"])
def test_the_profiler_is_asked_for_as_little_as_possible(profiling: Profiling, abi: Abi) -> None:
    """Of a Triton program only what comes after its call has begun."""
    script = '#!/bin/sh\n[ "$1" = --query-metrics ] && echo gpu__time_duration || echo "asked $*"'
    home = profiling.tool("ncu", script)
    candidate = replace(profiling.candidate("cuda"), abi=abi)
    profiler = Nsight(profiling.launcher, candidate, home, home / "ncu")

    said = ""
    try:
        profiling.profile(profiler)
    except MachineFault as fault:
        said = str(fault)

    assert "--clock-control none --target-processes application-only" in said
    assert ("--profile-from-start off" in said) == (abi == "python")
    assert "/call/block /call/inputs" in said
    process = "/runner/hip-alone" if abi == "hip" else "from pyrunner_alone.process import main"
    assert process in said


def test_a_profiler_that_knows_no_counter_is_the_machines_fault(profiling: Profiling) -> None:
    with pytest.raises(MachineFault, match="names no counter of this GPU: no Counter what it is"):
        profiling.profile(profiling.nsight(TWO, known="no"))


def test_a_profiler_that_does_not_start_blames_nobody(profiling: Profiling) -> None:
    with pytest.raises(MachineFault, match="Nsight Compute did not start the candidate: ==ERROR=="):
        profiling.profile(profiling.nsight('echo "==ERROR== no driver" > "$log"; exit 1'))


def test_a_profiler_is_found_in_its_installation(profiling: Profiling) -> None:
    path = f"target/{TARGET[platform.machine()]}/ncu"
    other = next(name for machine, name in TARGET.items() if machine != platform.machine())
    home = profiling.tool(path, "")
    profiling.tool(f"target/{other}/ncu", "")
    assert nsight.find(home) == home / path
    assert rocprof.find(home) is None

    profiling.tool("bin/rocprofv3", "")
    assert rocprof.find(home) == home / "bin/rocprofv3"


def judged(profiling: Profiling, body: str, **policy: float) -> Verdict:
    """The verdict on a candidate with two configs, by a profiler that does as ``body`` says."""
    profiling.nsight(body)
    spec = parse_spec(write_spec(profiling.folder, gate="counters", policy=policy))
    candidate = replace(profiling.candidate("cuda"), entry=spec.candidate.entry)
    asked = replace(spec, candidate=candidate)
    return gate.run(asked, profiling.launcher, profiling.folder / "tool")


def test_all_configs_are_counted(profiling: Profiling) -> None:
    found = judged(profiling, TWO)

    assert (found.outcome, found.reason) == ("PASS", "")
    assert found.summary == "Nsight Compute counted 4 launches in 2 configs"
    assert [case["profiled_ns"] for case in found.cases] == [150.0, 150.0]
    told = json.loads(found.files["counters.json"])
    assert told["profiler"] == "Nsight Compute"
    assert [call["config"] for call in told["calls"]] == [
        "f32 rows=8 cols=64",
        "f16 rows=3 cols=257",
    ]
    assert told["findings"] == found.extra["findings"]
    render_counters("//a", told)


def test_a_call_that_fails_is_named_and_the_others_are_counted(profiling: Profiling) -> None:
    half = f'[ "$(wc -c < "$3")" = 2048 ] && exec kill -9 $$; {TWO}'
    found = judged(profiling, f"{READY}; {half}")

    assert (found.outcome, found.reason) == ("FAIL", "CRASH")
    assert found.detail.endswith("\n  in f32 rows=8 cols=64")
    assert [(case["fault"], case["launches"]) for case in found.cases] == [("CRASH", 0), ("", 2)]


def test_a_candidate_that_spoils_the_log_is_rejected(profiling: Profiling) -> None:
    found = judged(profiling, f"{READY}; {DONE}")

    assert (found.outcome, found.reason) == ("REJECTED", "PROTOCOL_VIOLATION")


def test_after_a_call_that_never_ends_no_other_is_made(profiling: Profiling) -> None:
    found = judged(profiling, f"{READY}; sleep 100", call_seconds=1.0)

    assert (found.outcome, found.reason) == ("FAIL", "TIMEOUT")
    assert len(found.cases) == 1


def test_the_time_of_all_calls_passes_while_one_is_made(profiling: Profiling) -> None:
    """A profiler may call the candidate several times for one config."""
    patience, asked = Patience(1.0), []

    class Slow:
        name = "slow"

        def profile(self, folder: Path, seconds: Callable[[], float]) -> Profiled:
            for _ in range(3):
                asked.append(seconds())
                time.sleep(0.2)
            return Profiled(whole=True)

    gate._profiled(Slow(), profiling.folder, gate.CountersPolicy(), patience)

    assert asked[0] > asked[1] > asked[2]
    assert patience.spent_seconds >= 0.6


def test_a_toolchain_without_a_profiler_is_refused(profiling: Profiling) -> None:
    spec = SimpleNamespace(candidate=profiling.candidate("cuda"), policy={})

    with pytest.raises(SpecError, match="has neither ncu for this machine nor rocprofv3"):
        gate.run(cast("Spec", spec), profiling.launcher, profiling.folder)
    with pytest.raises(SpecError, match="no profiler is available"):
        gate.run(cast("Spec", spec), profiling.launcher)


def test_the_calls_of_all_groups_make_one(profiling: Profiling) -> None:
    """rocprofv3 reads one group of counters in a call."""
    found = profiling.profile(profiling.rocprof(f"{READY}\n{TABLE}\n{DONE}"))

    assert (found.whole, found.fault) == (True, None)
    (launch,) = found.launches
    assert (launch.kernel, launch.grid, launch.block) == ("add<float>", (64,), (64,))
    assert launch.figures == {
        "time_ns": 4000.0,
        "registers": 8.0,
        "memory_read_bytes": 25.5 * 1024,
        "memory_written_bytes": 25.5 * 1024,
        "l2_hit_percent": 25.5,
        "compute_percent": 25.5,
        "lanes_percent": 25.5,
        "shared_conflict_percent": 25.5,
        "occupancy_percent": 25.5,
    }
    assert sum(map(len, GROUPS)) == 7


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"{DONE}; sleep 100", "TIMEOUT"),
        (f'echo no table > "$table"; {DONE}', "PROTOCOL_VIOLATION"),
    ],
)
def test_what_a_candidate_does_to_rocprof_is_its_own_fault(
    profiling: Profiling, body: str, reason: str
) -> None:
    found = profiling.profile(profiling.rocprof(f"{READY}; {body}"), lambda: 2.0)

    assert found.fault is not None
    assert found.fault.reason is Reason(reason)


def test_rocprof_that_writes_nothing_is_the_machines_fault(profiling: Profiling) -> None:
    with pytest.raises(MachineFault, match="rocprofv3 wrote no counters: no counter FETCH"):
        profiling.profile(profiling.rocprof(f"{READY}; echo no counter FETCH; {DONE}"))


def test_a_call_that_fails_under_rocprof_is_the_candidates(profiling: Profiling) -> None:
    found = profiling.profile(profiling.rocprof(f"{READY}; kill -9 $$"))

    assert found.fault is not None
    assert found.fault.reason is Reason.CRASH
