"""What a gate costs before it judges: processor time of importing the judge, in a sandbox.

python tests/bench/bench_gate_start.py [RUNS]

Gates start as forks of a process that has torch and triton imported. It compiles the judge's files
once; without that each gate does. The imports are those of a correctness gate of Triton on cpu.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from kabuild.model.digest import Digest
from kabuild.sandbox import SandboxSpec, Spawner

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8"}
TREES = tuple(dict.fromkeys((sys.prefix, sys.base_prefix)))
TOOLS = ROOT / "rules" / "harness" / "tools"
KIT = ("limits", "namespaces", "rootfs", "seccomp")
IMPORTS = "import gate, gpu.session, correctness.gate, pyrunner.process, triton_apart.apart\n"


def used() -> float:
    """Processor seconds of this process and of all that it has waited for."""
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def lay_out(exec_root: Path) -> dict[str, str]:
    """An input root like that of a gate; the SHA-256 of its files."""
    tools = exec_root / "tools"
    shutil.copytree(TOOLS, tools, ignore=shutil.ignore_patterns("__pycache__"))
    for name in KIT:
        shutil.copy(ROOT / "kabuild" / "sandbox" / f"{name}.py", tools)
    (tools / "start.py").write_text(IMPORTS)
    (tools / "nothing.py").write_text("")
    files = sorted(tools.rglob("*.py"))
    return {str(file.relative_to(exec_root)): Digest.of(file.read_bytes()).hash for file in files}


def measure(root: Path, script: str, runs: int, sources: dict[str, str]) -> float:
    """Milliseconds of processor time of one run, after a first one."""

    def spend(runs: int) -> float:
        before = used()
        with Spawner() as spawner:
            for _ in range(runs):
                completed = spawner.run(
                    SandboxSpec(
                        argv=(sys.executable, f"tools/{script}.py"),
                        env=ENV,
                        input_dir=root / "exec",
                        outputs=(),
                        collect_into=root / "collected",
                        mounts=TREES,
                        preload=("numpy", "torch", "triton"),
                        sources=sources,
                        nestable=True,
                    )
                )
                assert completed.ok, completed
        return used() - before

    return (spend(runs + 1) - spend(1)) / runs * 1e3


def main(runs: int) -> None:
    """Print the table; the ratio is to a gate that compiles the judge itself."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "collected").mkdir()
        digests = lay_out(root / "exec")
        empty = measure(root, "nothing", runs, {})
        compiling = measure(root, "start", runs, {})
        compiled = measure(root, "start", runs, digests)
    print(f"an empty script              {empty:7.1f} ms")
    print(f"the judge, compiled by each  {compiling:7.1f} ms   1.00x")
    print(f"the judge, compiled once     {compiled:7.1f} ms   {compiled / compiling:4.2f}x")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=int, nargs="?", default=50, help="of each (50)")
    main(parser.parse_args().runs)
