"""What kabuild says where a device or a compiler is missing, or another one than was asked for."""

from __future__ import annotations

from typing import Any

from workplace import Workplace

TASK = "//tasks/hip2hip/softmax:softmax.correctness"
COMPILE = "//tasks/hip2hip/gemm:gemm.compile"
NVCC = "//toolchains/cuda:nvcc"


def collect(workplace: Workplace) -> dict[str, Any]:
    """By case: the command, its exit code, and all that it said."""
    absent = ("toolchain", "pin", NVCC, "--from=/usr/local/no-cuda-here")
    other = ("toolchain", "pin", NVCC, f"--from={workplace.root / 'kabuild'}")
    return {
        "another processor": _said(workplace, "test", TASK, "--platform=cuda:sm_80"),
        "an unknown processor": _said(workplace, "test", TASK, "--platform=cuda:sm_9000"),
        "no such device": _said(workplace, "test", TASK, "--platform=cuda", "--devices=99"),
        "no device": _said(
            workplace, "test", TASK, "--platform=cuda", env={"CUDA_VISIBLE_DEVICES": ""}
        ),
        "no device of AMD's": _said(workplace, "test", TASK, "--platform=rocm"),
        "no nvcc": _said(workplace, *absent),
        "no nvcc in there": _said(workplace, *other),
        "compiling without nvcc": _said(workplace, "build", COMPILE, "--platform=cuda:sm_90"),
    }


def _said(workplace: Workplace, *arguments: str, env: dict[str, str] | None = None) -> Any:
    ran = workplace.kabuild(*arguments, env=env or {})
    return {
        "command": " ".join(["kabuild", *arguments]),
        "environment": env or {},
        "exit_code": ran.code,
        "said": (ran.err + ran.out).replace(str(workplace.root), "WORKSPACE").splitlines()[-8:],
    }
