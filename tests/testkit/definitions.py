"""Definitions and workloads of our own writing, with the code of two benchmarks that draw them."""

from __future__ import annotations

import json
from typing import Any

INPUTS = """
import torch
from absent_package import Definition, Workload, needed_elsewhere

def _rand_tensor(shape, dtype, device):
    if dtype is torch.int32:
        return torch.randint(0, 100, shape, dtype=dtype, device=device)
    return torch.randn(shape, dtype=dtype, device=device)

def is_sampling_operation(definition):
    return definition.op_type == "sampling"
"""
SOL_INPUTS = (
    INPUTS
    + """
def _cast_to_fp4x2(x): ...
def _is_weight_matrix(name, shape): ...
def _is_norm_bias(name): ...
def _is_causal_attention_mask(name, shape, description): ...
def _is_binary_mask(name, description): ...
def _is_rope_cos_sin(name): ...
def _is_positive_tensor(name, description): ...
def _is_ssm_decay(name): ...
def _is_softmax_output(name, description): ...

def _is_norm_weight(name):
    return name == "norm_weight"

def _generate_heuristic_tensor(name, shape, dtype, device, description=None):
    return torch.ones(shape, dtype=dtype, device=device) if _is_norm_weight(name) else None

def gen_inputs(definition, workload, device, safe_tensors=None, custom_inputs_fn=None):
    shapes = definition.get_input_shapes(workload.axes)
    made = {}
    if custom_inputs_fn is not None:
        told = definition.get_resolved_axes_values(workload.axes)
        made = custom_inputs_fn({**told, **workload.get_scalar_inputs()}, torch.device(device))
    out = []
    for name, spec in definition.inputs.items():
        source = workload.inputs[name]
        dtype = dtype_str_to_torch_dtype(spec.dtype)
        if isinstance(source, SafetensorsInput):
            out.append(safe_tensors[name])
        elif isinstance(source, ScalarInput):
            out.append(source.value)
        elif isinstance(source, CustomInput):
            out.append(made[name])
        else:
            value = _generate_heuristic_tensor(name, shapes[name], dtype, device)
            out.append(_rand_tensor(shapes[name], dtype, device) if value is None else value)
    return out
"""
)
CORRECTNESS = """
import torch
from absent_package import Correctness, ToleranceSpec

def set_seed(seed):
    torch.manual_seed(seed)

def check_tensor_sanity(output, reference):
    return not output.any() and bool(reference.any())

def compute_error_stats(output, reference, tolerance):
    off = (output.double() - reference.double()).abs()
    near = off <= tolerance.max_atol + tolerance.max_rtol * reference.double().abs()
    wrong = float(near.double().mean()) < tolerance.required_matched_ratio
    found = Correctness(max_absolute_error=float(off.max()))
    return found, wrong or check_tensor_sanity(output, reference)
"""
TOLERANCE = """
from absent_package import BaseModelWithDocstrings, Field

class ToleranceSpec(BaseModelWithDocstrings):
    max_atol: float = Field(default=1e-2)
    max_rtol: float = Field(default=1e-2)
    required_matched_ratio: float = Field(default=0.9)
"""
FI_INPUTS = (
    INPUTS
    + """
def gen_inputs(definition, workload, device, safe_tensors=None):
    shapes = definition.get_input_shapes(workload.axes)
    out = []
    for index, (name, spec) in enumerate(definition.inputs.items()):
        if workload.inputs[name].type == "scalar":
            out.append(workload.inputs[name].value)
        else:
            out.append(_rand_tensor(shapes[index], dtype_str_to_torch_dtype(spec.dtype), device))
    return out

def compute_error_stats(output, reference, cfg):
    off = (output.double() - reference.double()).abs()
    return float(off.max()), 0.0, bool((off > cfg.atol).any()), 1.0
"""
)
EVALUATOR = """
import torch
from absent_package import Evaluator, make_eval, normalize_result, compute_error_stats

class DefaultEvaluator(Evaluator):
    @classmethod
    def check_correctness(cls, definition, runnable, inputs, expected, cfg, log_path, device):
        for given, wanted in zip(inputs, expected):
            assert not runnable.metadata.destination_passing_style
            found = normalize_result(definition, runnable(*given), device)
            torch.cuda.synchronize(device)
            for one, other in zip(found, wanted):
                far, _, wrong, _ = compute_error_stats(one, other, cfg)
                if wrong:
                    errors = Correctness(max_absolute_error=far)
                    return errors, make_eval(status=EvaluationStatus.INCORRECT_NUMERICAL)
        return None, None
"""
RESULTS = """
from absent_package import Definition

def normalize_result(definition, result, device):
    return [*result] if isinstance(result, tuple | list) else [result]
"""
CONFIG = """
from absent_package import BaseModel, Field

class ResolvedEvalConfig(BaseModel):
    num_trials: int = 2
    atol: float = 1e-2
    extra: dict = Field(default_factory=dict)
"""


def axes_of(**axes: int | str | None) -> dict[str, Any]:
    """Axes: a number is constant, a text an expression, and None variable."""
    made: dict[str, Any] = {}
    for name, value in axes.items():
        match value:
            case None:
                made[name] = {"type": "var"}
            case int():
                made[name] = {"type": "const", "value": value}
            case _:
                made[name] = {"type": "expr", "expression": value}
    return made


def tensors_of(**tensors: str) -> dict[str, Any]:
    """Tensors from texts such as ``float32 M N``, and ``float32`` for a number."""
    made = {}
    for name, text in tensors.items():
        dtype, *shape = text.split()
        made[name] = {"shape": shape or None, "dtype": dtype}
    return made


def workloads_of(*given: tuple[dict[str, int], dict[str, Any]]) -> str:
    lines = (
        {"uuid": str(i), "axes": axes, "inputs": sources} for i, (axes, sources) in enumerate(given)
    )
    return "".join(json.dumps(line) + "\n" for line in lines)


RANDOM = {"type": "random"}
NORM = {
    "name": "norm",
    "description": "Rows of x over their mean size.",
    "axes": axes_of(rows=None, half=16, cols="half * 2"),
    "inputs": tensors_of(x="bfloat16 rows cols", norm_weight="bfloat16 cols", eps="float32"),
    "outputs": tensors_of(y="bfloat16 rows cols", scale="float32 rows"),
    "reference": "import torch\n\ndef run(x, norm_weight, eps):\n"
    "    assert x.shape[1] == 32\n"
    "    wide = x.to(torch.float32)\n"
    "    scale = torch.rsqrt(wide.square().mean(-1) + eps)\n"
    "    y = (wide * scale[:, None]).to(x.dtype) * norm_weight\n"
    '    return {"scale": scale, "y": y}\n',
}
SOURCES = {"x": RANDOM, "norm_weight": RANDOM, "eps": {"type": "scalar", "value": 1e-3}}
OTHER = {**SOURCES, "eps": {"type": "scalar", "value": 0.5}}
NORMS = workloads_of(({"rows": 24}, SOURCES), ({"rows": 96}, SOURCES), ({"rows": 48}, OTHER))
ROUTED = {
    "name": "routed",
    "axes": axes_of(N=None, x=None, kinds=8),
    "custom_inputs_entrypoint": "make",
    "inputs": tensors_of(X="float32 N x", table="float32 kinds x", places="int64 N"),
    "outputs": tensors_of(Y="float32 N x"),
    "reference": "import torch\n\ndef make(told, device):\n"
    "    n, x, kinds = told['N'], told['x'], told['kinds']\n"
    "    return {'X': torch.randn(n, x, device=device),\n"
    "            'table': torch.randn(kinds, x, device=device),\n"
    "            'places': torch.randint(0, kinds, (n,), device=device)}\n\n"
    "@torch.no_grad()\ndef run(X, table, places):\n    return X + table[places]\n",
}
CUSTOM = {"X": {"type": "custom"}, "table": {"type": "custom"}, "places": {"type": "custom"}}
GEMM = {
    "name": "gemm",
    "op_type": "gemm",
    "axes": axes_of(M=None, N=24, K=40),
    "constraints": ["M * 2 >= 8"],
    "inputs": tensors_of(A="float32 M K", B="float32 N K"),
    "outputs": tensors_of(C="float32 M N"),
    "reference": "import torch\n\ndef run(A, B):\n    return torch.matmul(A, B.T)\n",
}
STORED = {"type": "safetensors", "path": "blob/a.safetensors", "tensor_key": "A"}
GEMMS = workloads_of(
    ({"M": 16}, {"A": RANDOM, "B": RANDOM}), ({"M": 64}, {"A": STORED, "B": RANDOM})
)
TRITON = "import triton\n\n@triton.jit\ndef kernel(x): ...\n\ndef run(A, B):\n    kernel[(1,)](A)\n"
BROKEN: dict[str, tuple[str, str, str]] = {
    "stored": (
        json.dumps(GEMM),
        workloads_of(({"M": 8}, {"A": STORED, "B": STORED})),
        "NEEDS_DATA  all its workloads take 'A' and 1 more from safetensors files of a dataset",
    ),
    "malformed": (
        json.dumps(GEMM, indent=1).replace('"op_type": "gemm",', '"op_type" "gemm",'),
        GEMMS,
        "DOES_NOT_LOAD  definition.json:3: it is not JSON: Expecting ':' delimiter",
    ),
    "line": (
        json.dumps(GEMM),
        GEMMS + '{"axes": {"M": "8"}, "inputs": {}}\n',
        "DOES_NOT_LOAD  workload.jsonl:3: 'M' is '8', expected an integer",
    ),
    "axis": (
        json.dumps({**GEMM, "outputs": tensors_of(C="float32 M L")}),
        GEMMS,
        "DOES_NOT_LOAD  definition.json: the size 'L': no axis 'L'",
    ),
    "size": (
        json.dumps({**GEMM, "axes": axes_of(M=None, N="__import__('os').getpid()", K=40)}),
        GEMMS,
        "DOES_NOT_LOAD  definition.json: the size '__import__('os').getpid()': '__import__(",
    ),
    "type": (
        json.dumps({**GEMM, "outputs": tensors_of(C="float16 M N")}),
        GEMMS,
        "REFERENCE_DIFFERS  its reference returns 'C' as T[m, 24], and its definition says float16",
    ),
    "number": (
        json.dumps({**GEMM, "inputs": tensors_of(A="float32 M K", B="float32")}),
        GEMMS,
        "NUMBER_DRAWN  its number 'B' is drawn like a tensor, and a call's numbers are declared",
    ),
    "fp4": (
        json.dumps({**GEMM, "inputs": tensors_of(A="float32 M K", B="float4_e2m1 N K")}),
        GEMMS,
        "ELEMENT_TYPE  'B' is of type 'float4_e2m1'",
    ),
    "values": (
        json.dumps({**GEMM, "constraints": ["M == A[0].item()"]}),
        GEMMS,
        "NEEDS_DATA  its constraint 'M == A[0].item()' is about values, and these are drawn",
    ),
    "broken": (
        json.dumps({**GEMM, "constraints": ["M <= N", "M == N * 2"]}),
        GEMMS,
        "DOES_NOT_LOAD  definition.json: 'M == N * 2' does not hold in a workload",
    ),
    "entry": (
        json.dumps({**GEMM, "reference": "import torch\n"}),
        GEMMS,
        "NO_ENTRY  its reference defines no function 'run'",
    ),
    "triton": (
        json.dumps({**GEMM, "reference": TRITON}),
        GEMMS,
        "NEEDS_GPU  its own code fails on a CPU",
    ),
    "empty": (json.dumps(GEMM), "\n", "NO_WORKLOADS  it has no workloads, which say its sizes"),
}
