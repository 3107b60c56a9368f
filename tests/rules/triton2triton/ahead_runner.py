"""Compiles a module's kernels as a runner does, with or without what its compile gate handed on.

    python ahead_runner.py TOOLS FOLDER handed|alone

Prints, for each kernel in turn, whether Triton had it already. The runner's own code loads the
module, and Triton is as a runner finds it, except that it launches nothing.
"""

import json
import os
import sys
from pathlib import Path


def main(tools: str, folder: str, how: str) -> None:
    """Lay the kernels out, call the module, and print."""
    place = Path(folder)
    os.environ["TRITON_CACHE_DIR"] = str(place / how)
    hip = Path(tools).parent / "hip"
    spec = json.loads((place / "ahead.json").read_text())
    sys.path[:0] = [tools, str(hip / "common"), str(hip / spec["platform"] / "driver")]
    import ahead_run
    import ahead_stand_in
    from ahead_platform import ahead_platform
    from triton import knobs

    sys.path.insert(0, str(Path(__file__).parents[3] / "rules/harness/tools"))
    from base.program import Program
    from pyrunner.module import load_entry
    from pyrunner_device.binaries import lay_out

    if how == "handed":
        lay_out(str(place / "kernels.json"))
    found: list[bool] = []
    knobs.compilation.listener = lambda *, cache_hit, **_: found.append(cache_hit)
    ahead_stand_in._rename_sources = lambda: None
    path = str(place / "kernel.py")
    entry = load_entry(Program("python", path, spec["entry"], platform=spec["platform"]), path)
    ahead_run._load = lambda path: sys.modules[entry.__module__]
    ahead_stand_in.stand_in(ahead_platform(spec["platform"]), spec["arch"])
    ahead_run._call_all(place / "kernel.py", spec)
    print(json.dumps(found))


main(*sys.argv[1:])
