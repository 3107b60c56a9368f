"""A GPU must be usable from within the strictest sandbox: its driver has demands of its own."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kabuild.sandbox import Spawner, probe
from tests.kabuild.sandbox.boxes import PYTHON_TREES, Box

NVIDIA = tuple(str(path) for path in sorted(Path("/dev").glob("nvidia*")))
usable = "/dev/nvidiactl" in NVIDIA and find_spec("torch") is not None and probe() is None


@pytest.mark.device
@pytest.mark.skipif(not usable, reason="needs an NVIDIA GPU, torch and namespaces")
@pytest.mark.parametrize("preload", [(), ("torch",)])
def test_cuda_computes_in_a_sandbox(tmp_path: Path, preload: tuple[str, ...]) -> None:
    site = tuple(path for path in sys.path if Path(path).is_dir() and path.startswith("/"))
    with Spawner() as spawner:
        done = Box(spawner, tmp_path).python(
            "import torch\nprint(torch.ones(1000, device='cuda').sum().item())",
            mounts=(*PYTHON_TREES, *(path for path in site if "site-packages" in path), *NVIDIA),
            preload=preload,
        )

    assert (done.stdout, done.exit_code) == (b"1000.0\n", 0), done.stderr
