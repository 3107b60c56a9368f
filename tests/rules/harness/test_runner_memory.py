"""What a runner has loaded, and what is left of memory that could not be made."""

# mypy: allow-untyped-defs, allow-untyped-calls

import gc
import json
from pathlib import Path

import pytest
import torch
from base.program import Argument, Config, Program, Signature
from runners.config_memory import ConfigMemory
from runners.launcher import Launcher

CALL = {
    "targets": "y",
    "names": ["add"],
    "state_by": "name",
    "node": {
        "call": {"function": "add"},
        "args": [{"name": "x"}, {"name": "w"}],
        "keywords": [],
    },
}
SIGNATURE = Signature(
    inputs=(Argument("x", "f32", ("n",)),),
    outputs=(Argument("y", "f32", ("n",)),),
    scalars=(),
    dims=("n",),
    state=(Argument("w", "f32", ("n",)),),
)
SMALL, LARGE = (Config(f"n={n}", {"n": n}, "f32", {}) for n in (4, 4096))


def program(folder):
    path = folder / "sum.py"
    path.write_text("def add(x, w):\n    return x + w\n")
    return Program(abi="call", path=str(path), entry="add", call=json.dumps(CALL))


def test_a_runner_knows_what_it_has_loaded(tmp_path):
    with Launcher.start() as launcher, launcher.open(program(tmp_path), SIGNATURE) as runner:
        assert not runner.has_loaded(SMALL, 2)

        runner.load(SMALL, 2)
        known = [runner.has_loaded(*asked) for asked in ((SMALL, 2), (SMALL, 1), (LARGE, 2))]
        assert known == [True, False, False]
        runner.load(LARGE, 1)

        assert [runner.has_loaded(SMALL, 2), runner.has_loaded(LARGE, 1)] == [False, True]
        inputs = {"x": torch.ones(4096), "w": torch.full((4096,), 2.0)}
        assert runner.batch([inputs]).outputs[0]["y"].unique().tolist() == [3.0]


def test_memory_that_could_not_be_made_leaves_no_descriptors(tmp_path):
    def made(state):
        return ConfigMemory(program(tmp_path), SIGNATURE, LARGE, 1, {"w": state})

    def open_files():
        gc.collect()  # a mapping has a descriptor of its own
        return len([*Path("/proc/self/fd").iterdir()])

    before = open_files()
    with pytest.raises(ValueError, match="the state 'w' differs from its declaration"):
        made(torch.zeros(3))
    assert open_files() == before
    memory = made(torch.zeros(4096))
    assert open_files() > before
    for _ in range(2):
        memory.close()
    del memory

    assert open_files() == before
