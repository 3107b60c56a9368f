"""Profilers in real sandboxes; a script stands for each, as the real ones need a GPU.

What Nsight Compute itself counts is looked at on a GPU by ``tests/device/profilers.py``.
"""

from __future__ import annotations

import csv
import io
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import torch
from alone.call_files import write_call
from base.program import CandidateFault, Config, MachineFault, Program
from base.spec import Spec, SpecError
from counters import gate, nsight, rocprof
from counters.findings import find
from counters.launches import MOST_LAUNCHES, Launch, Profiled, Profiler, number, plain_name
from counters.nsight import FIGURES, Nsight, read
from counters.rocprof import GROUPS, Rocprof
from hypothesis import given
from hypothesis import strategies as st
from run_support import DOUBLING
from runners.control_block import ControlBlock
from runners.launcher import Launcher
from terms.reasons import Reason
from terms.verdict import canonical_json

CONFIG = Config("f32 n=1000", {"n": 1000}, "f32", {})
KNOWN = "gpu__time_duration dram__bytes_read l1tex__t_sectors_pipe_lsu_mem_global_op_atom"
TARGET = {"x86_64": "linux-desktop-glibc_2_11_3-x64", "aarch64": "linux-desktop-t210-a64"}

# `log` is where the log belongs, `metrics` what is asked for; the candidate's process would be
# started with what is left of the arguments.
NSIGHT = """\
#!/bin/sh
if [ "$1" = --query-metrics ]; then
  for name in KNOWN; do echo "$name  Counter  what it is"; done
  exit
fi
while [ "$1" != "/runner/hip-alone" ]; do
  case "$1" in --log-file) log=$2;; --metrics) metrics=$2;; esac
  shift
done
launch() {
  printf '"%s","1","%s","(256, 1, 1)","(40, 2, 1)","%s","1,024.5"\\n' "$1" "$2" "$3" >> "$log"
}
begin() {
  echo '==PROF== Connected to process 7' > "$log"
  echo '"ID","Process ID","Kernel Name","Block Size","Grid Size","gpu__time_duration.sum",\
"dram__bytes_read.sum"' >> "$log"
  echo '"","","","","","nsecond","byte"' >> "$log"
}
BODY
"""
READY, DONE = "echo kabuild-alone ready", "echo kabuild-alone done"
TWO = f"{READY}; begin; launch 0 'void scale<float>(float *)' 100; launch 1 twice 50; {DONE}"

ROCPROF = """\
#!/bin/sh
while [ "$1" != -- ]; do
  case "$1" in
    -d) folder=$2;; -o) name=$2;; --pmc) counters="$2"; [ "${3#-}" = "$3" ] && counters="$2 $3 $4";;
  esac
  shift
done
table="$folder/${name}_counter_collection.csv"
mkdir -p "$folder"
BODY
"""
TABLE = """\
echo '"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id","Grid_Size",\
"Kernel_Id","Kernel_Name","Workgroup_Size","LDS_Block_Size","Scratch_Size","VGPR_Count",\
"Accum_VGPR_Count","SGPR_Count","Counter_Name","Counter_Value","Start_Timestamp","End_Timestamp"' \
  > "$table"
for counter in $counters; do
  echo "1,1,\\"Agent 4\\",1,9,9,4096,10,\\"void add<float>(float*, int)\\",64,0,0,8,0,16,\
\\"$counter\\",25.500000,5000,9000" >> "$table"
done
"""


@dataclass(frozen=True)
class Profiling:
    """A candidate, and the sandbox in which a profiler would watch it."""

    launcher: Launcher
    folder: Path

    def nsight(self, body: str, *, known: str = KNOWN) -> Profiler:
        """A profiler that does as ``body`` says."""
        path = f"target/{TARGET[platform.machine()]}/ncu"
        script = NSIGHT.replace("KNOWN", known).replace("BODY", body)
        home = self.tool(path, script)
        return Nsight(self.launcher, self.candidate("cuda"), home, home / path)

    def rocprof(self, body: str) -> Profiler:
        home = self.tool("bin/rocprofv3", ROCPROF.replace("BODY", body))
        return Rocprof(self.launcher, self.candidate("rocm"), home, home / "bin/rocprofv3")

    def profile(self, profiler: Profiler, left: Callable[[], float] = lambda: 20.0) -> Profiled:
        call = self.folder / "call"
        call.mkdir()
        inputs = {"x": torch.ones(1000)}
        write_call(call, self.candidate("cuda"), DOUBLING, CONFIG, inputs)
        return profiler.profile(call, left)

    def tool(self, path: str, script: str) -> Path:
        program = self.folder / "tool" / path
        program.parent.mkdir(parents=True)
        program.write_text(script)
        program.chmod(0o755)
        return self.folder / "tool"

    def candidate(self, where: str) -> Program:
        for name in ("kernel.so", "hip-alone"):
            (self.folder / name).touch()
        path, runner = (f"{self.folder}/{name}" for name in ("kernel.so", "hip-alone"))
        return Program("hip", path, "doubling", (), runner, where)


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
    ],
)
def test_a_call_that_fails_is_the_candidates(
    profiling: Profiling, body: str, reason: str, said: str
) -> None:
    found = profiling.profile(profiling.nsight(f"{READY}; {body}"))

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


def test_rocprof_that_writes_nothing_is_the_machines_fault(profiling: Profiling) -> None:
    with pytest.raises(MachineFault, match="rocprofv3 wrote no counters: no counter FETCH"):
        profiling.profile(profiling.rocprof(f"{READY}; echo no counter FETCH; {DONE}"))


def test_a_call_that_fails_under_rocprof_is_the_candidates(profiling: Profiling) -> None:
    found = profiling.profile(profiling.rocprof(f"{READY}; kill -9 $$"))

    assert found.fault is not None
    assert found.fault.reason is Reason.CRASH


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("void <unnamed>::softmax_rows<float>(const float *, int)", "softmax_rows<float>"),
        ("(anonymous namespace)::twice(float*)", "twice"),
        ("silu_kernel", "silu_kernel"),
        ("void a::b<c::d>(e)", "a::b<c::d>"),
        ("evil\x1b[2J", "evil?[2J"),
    ],
)
def test_a_kernel_is_named_without_its_parameters(symbol: str, name: str) -> None:
    assert plain_name(symbol) == name


@pytest.mark.parametrize(
    ("text", "value"),
    [("1,024.5", 1024.5), ("-2e3", -2000.0), ("7", 7.0)]
    + [(text, None) for text in ("", "nan", "inf", "1e999", "1.2.3", "9" * 30, "0x10", "1_0", ".")],
)
def test_only_numbers_that_a_device_may_count_are_read(text: str, value: float | None) -> None:
    assert number(text) == value


CELLS = st.text(max_size=12) | st.sampled_from(["1", "1e18", "-3", "(1, 1, 1)", "0.001", "9" * 18])
COLUMNS_OF = {
    nsight.read: ("ID", "Kernel Name", "Grid Size", "Block Size", "gpu__time_duration.sum"),
    rocprof.read: (
        *("Dispatch_Id", "Kernel_Name", "Grid_Size", "Workgroup_Size", "VGPR_Count"),
        *("Counter_Name", "Counter_Value", "Start_Timestamp", "End_Timestamp"),
    ),
}


@pytest.mark.parametrize("reads", COLUMNS_OF, ids=["nsight", "rocprof"])
@given(rows=st.lists(st.lists(CELLS, min_size=9, max_size=9), max_size=4))
def test_whatever_a_candidate_writes_can_be_told(
    reads: Callable[[str], list[Launch] | None], rows: list[list[str]]
) -> None:
    """Read, remarked on, and encoded: a log is as untrusted as the candidate."""
    columns = COLUMNS_OF[reads]
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([columns, *(r[: len(columns)] for r in rows)])

    launches = reads(out.getvalue()) or []

    told = [found.to_json() for found in find("f32 n=1", launches)]
    assert canonical_json({"launches": [one.to_json() for one in launches], "findings": told})
    assert all(one.kernel.isprintable() or not one.kernel for one in launches)


@pytest.mark.parametrize("reads", COLUMNS_OF, ids=["nsight", "rocprof"])
def test_a_log_without_end_is_read_in_part(
    reads: Callable[[str], list[Launch] | None],
) -> None:
    columns = COLUMNS_OF[reads]
    head = ",".join(f'"{name}"' for name in columns)
    row = ",".join(['"{0}"', *['"7"'] * (len(columns) - 1)])
    many = "\n".join([head, *(row.format(i) for i in range(1, 3 * MOST_LAUNCHES))])

    assert len(reads(many) or ()) == MOST_LAUNCHES + 1
    assert not reads(f'{head}\n"{"x" * (1 << 20)}"')


@pytest.mark.parametrize(
    "log",
    ["", '"ID"\n', '"ID","Kernel Name"\n"0","k"\n', "\x00\xff", '"ID","Kernel Name","Grid Size"'],
)
def test_a_log_of_another_form_has_no_launches(log: str) -> None:
    assert read(log) == []
