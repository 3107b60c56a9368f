"""Compile gates that compile the Triton kernels of a Python module for a GPU, ahead of time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kabuild.rule import Artifact, Context, Limits

from .compilers import architectures
from .configs import visible_configs
from .judge_files import AHEAD_FILES, TOOLS, platform_file
from .signature import read_signature

BINARIES = "kernels.json"
"""What such a gate makes: the compiled kernels, for the module's runners."""

LIMITS = Limits(timeout=300.0, memory=8 << 30, processes=128, scratch=1 << 30)
_DEVICE = "triton"
"""What compiling ahead of time asks of a platform: ``tools/ahead_platform.py``."""


def gpu(ctx: Context) -> str:
    """The processor that kernels are compiled for; empty where the interpreter runs them."""
    return "" if ctx.platform.name == "cpu" else ctx.platform.get("arch")


def handed_on(ctx: Context) -> bool:
    """Whether kernels can be compiled here for runners that have the device."""
    return bool(gpu(ctx)) and ctx.platform_spec.ahead


def ahead_inputs(ctx: Context, called: Mapping[str, Any]) -> Mapping[str, Artifact]:
    """The inputs of a gate that compiles ahead; ``called`` says what is called, in ``ahead.json``.

    The gate's own tools are not among them.
    """
    platform = ctx.platform.name
    signature = read_signature(ctx.attrs)
    spec = {
        "platform": platform,
        # Not a variant such as sm_90a: Triton adds the letter itself.
        "arch": ctx.platform_spec.architectures.get(gpu(ctx), gpu(ctx)),
        "signature": signature.to_json(),
        "configs": [c.to_json() for c in visible_configs(ctx.attrs, signature, platform)],
        **called,
    }
    return {
        "ahead.json": ctx.literal(spec),
        **{f"tools/{path}": ctx.builtin(f"{TOOLS}/{path}") for path in AHEAD_FILES},
        "hip/common": ctx.builtin("toolchains/hip/common"),
        f"hip/{platform}/driver": ctx.builtin(f"toolchains/hip/{platform}/driver"),
        **platform_file(ctx, "tools", _DEVICE),
        **architectures(ctx),
        **ctx.sandbox_kit("tools"),
    }
