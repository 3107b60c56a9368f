"""TritonBench: part T, functions of PyTorch with a file of calls each. Part G has no oracle.

``TERMS``, ``MARK``, ``TASKS`` and ``task`` are for ``kabuild import``: the standard library only.
The rest runs where tasks are captured and judged, beside ``library`` and ``original``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from imported.called_files import CalledFile
    from imported.functions import Values
    from torch import Generator, Tensor

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "library"))

TERMS = {"licence": "Apache-2.0", "redistribute": True}
MARK = "data/TritonBench_T_v1"
"""What a checkout of this benchmark has."""
TASKS = tuple(f"data/TritonBench_{part}_v1/*.py" for part in ("G", "T"))

Table = dict[str, Any]


def task(checkout: Any, path: str) -> Table:
    """One file, by part."""
    del checkout
    _, home, file = path.split("/")
    part = home.split("_")[1]
    return {"name": f"{part}/{file.removesuffix('.py')}", "files": [path], "tags": [part]}


def capture(name: str, files: Sequence[str]) -> Table:
    """The facts of a task for the lock. Raises LeftOutError."""
    from imported.boundary import LeftOutError, needing_packages, sources
    from imported.constants import read_module
    from imported.functions import learn, tensors
    from imported.pytests import UNTIL

    if name.startswith("G/"):
        what = "only its kernel defines what it computes, so there is no oracle"
        raise LeftOutError("NO_ORACLE", what)
    file = needing_packages(lambda: _file(files[0]))
    file.check()

    def call(_: Mapping[str, int], device: str) -> tuple[Values, list[Tensor]]:
        values = file.first_call(device)
        return values, list(tensors(values).values())

    entry = file.function.__name__
    learnt = learn(file.function, call, {}, entry, devices=("meta", "cpu"), keywords=True)
    return {
        "origin": read_module(HERE / "original" / files[0], functions=(), of="").origin,
        "attrs": {
            **learnt.attrs,
            "layout": dict.fromkeys(learnt.attrs["outputs"], "any"),
            "correctness": {} if file.takes_any_values() else {"distributions": ["default"]},
            **sources("tritonbench", files),
            "until": UNTIL,
            "adapter": "//rules/imports/tools/imported/stand_in.py",
            "parameters": learnt.parameters({}, file=files[0]),
            "brief": f"Write {entry} with a Triton kernel that computes what the one of {files[0]} "
            f"does, from the same arguments, and is faster. (TritonBench)",
        },
    }


def inputs(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The tensors of the file's first call, under a seed."""
    from imported.functions import inputs_of
    from imported.modules import under_seed

    del config
    told, device = _told(), str(generator.device)
    file = _file(told["file"])
    return inputs_of(under_seed(generator, lambda: file.first_call(device)), told)


def reference(**given: Any) -> Table:
    """What the original computes, in the precision of its inputs."""
    from imported.functions import run

    told = _told()
    file = _file(told["file"])
    return run(file.function, file.first_call(told["device"]), given, told)


def _file(path: str) -> CalledFile:
    from imported.called_files import CalledFile

    return CalledFile.read(HERE / "original" / path)


def _told() -> Table:
    told: Table = json.loads((HERE / "parameters.json").read_text())
    return told
