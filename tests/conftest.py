"""What all tests share: where the tools that run inside sandboxes import from.

In a sandbox each tool's directory is the first of its path. Here they follow one another; no
two have a module of the same name. ``kabuild/sandbox`` is last: only its three self-contained
modules are found there, as in the input root of a gate. No test fails for being slow.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import settings

ROOT = Path(__file__).parents[1]
TOOLS = (
    "rules/harness/tools",
    "rules/triton2triton/tools",
    "rules/hip_cpu/tools",
    "rules/hip_cuda/tools",
    "rules/hip_rocm/tools",
    "rules/agent/tools",
    "rules/agent/tools/client",
    "toolchains/agents",
    "toolchains/agents/evolve",
    "toolchains/hip/cpu/driver",
    "toolchains/hip/cuda/driver",
    "toolchains/hip/rocm/driver",
    "toolchains/hip/common",
    "tests/rules/harness",
    "tests/device",
)

sys.path[:0] = [str(ROOT / path) for path in TOOLS]
sys.path.append(str(ROOT / "kabuild" / "sandbox"))

settings.register_profile("kabuild", deadline=None)
settings.load_profile("kabuild")
