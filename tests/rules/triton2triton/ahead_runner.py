"""Compiles a module's kernels as a runner does, with or without what its compile gate handed on.

    python ahead_runner.py TOOLS FOLDER handed|alone

Prints, for each kernel in turn, whether Triton had it already.
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
    sys.path[:0] = [tools, str(hip / "common"), str(hip / "rocm/driver")]
    import ahead_run
    from triton import knobs

    sys.path.insert(0, str(Path(__file__).parents[3] / "rules/harness/tools"))
    from pyrunner_device.binaries import lay_out

    if how == "handed":
        lay_out(str(place / "kernels.json"))
    found: list[bool] = []
    knobs.compilation.listener = lambda *, cache_hit, **_: found.append(cache_hit)
    spec = json.loads((place / "ahead.json").read_text())
    said = ahead_run.prepare(place / "kernel.py", spec, place / how)()
    assert not said["error"] + said["left_out"], said
    print(json.dumps(found))


main(*sys.argv[1:])
