"""What a sandbox costs: medians of starting a command and waiting for its end.

python tests/bench/bench_sandbox.py [RUNS]
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from kabuild.sandbox import SandboxSpec, Spawner, probe

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8"}
TREES = tuple(dict.fromkeys((sys.prefix, sys.base_prefix)))
BWRAP = (
    *("bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"),
    *("--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib"),
    *("--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
)


def measure(name: str, work: Callable[[], object], runs: int, base: float | None = None) -> float:
    """Print and return the median milliseconds of ``work`` after one unmeasured call."""
    work()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1e3)
    median = statistics.median(times)
    ratio = f"{median / base:6.2f}x" if base else "       "
    print(f"{name:44} median {median:8.2f} ms   min {min(times):8.2f} ms   {ratio}")
    return median


def main(runs: int) -> None:
    """Print the table; ratios are to the plain process of the same group."""
    refusal = probe()
    if refusal:
        print(f"no sandboxes here: {refusal}")
    with tempfile.TemporaryDirectory() as name, Spawner() as spawner:
        root = Path(name)
        for directory in ("exec", "collected"):
            (root / directory).mkdir()
        (root / "exec" / "script.py").write_text("import torch\nprint(torch.ones(2).sum())\n")

        def contained(*argv: str, preload: tuple[str, ...] = (), hermetic: bool = True) -> None:
            spec = SandboxSpec(
                argv=argv,
                env=ENV,
                input_dir=root / "exec",
                outputs=(),
                collect_into=root / "collected",
                mounts=TREES,
                preload=preload,
                hermetic=hermetic,
            )
            completed = spawner.run(spec)
            assert completed.ok, completed

        def plain(*argv: str) -> None:
            subprocess.run(argv, cwd=root / "exec", env=ENV, capture_output=True, check=True)

        true, script = ("/bin/true",), (sys.executable, "script.py")
        base = measure("true, plain subprocess", lambda: plain(*true), runs)
        measure("true, without namespaces", lambda: contained(*true, hermetic=False), runs, base)
        if not refusal:
            measure("true, sandbox", lambda: contained(*true), runs, base)
        if shutil.which("bwrap"):
            measure("true, bubblewrap", lambda: plain(*BWRAP, *true), runs, base)
        few = max(3, runs // 20)
        base = measure("import torch, plain subprocess", lambda: plain(*script), few)
        if not refusal:
            measure("import torch, sandbox, cold", lambda: contained(*script), few, base)
            warm = "import torch, sandbox, torch preloaded"
            measure(warm, lambda: contained(*script, preload=("torch",)), few * 4, base)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=int, nargs="?", default=100, help="of each command (100)")
    main(parser.parse_args().runs)
