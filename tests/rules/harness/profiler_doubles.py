"""Profilers that scripts stand for, in the sandboxes of real runners."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from alone.call_files import write_call
from base.program import Config, Program
from counters.launches import Profiled, Profiler
from counters.nsight import Nsight
from counters.rocprof import Rocprof
from run_support import DOUBLING
from runners.launcher import Launcher

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
