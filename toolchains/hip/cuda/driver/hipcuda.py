"""Compile HIP for NVIDIA's processors.

Exit codes: 0 done; 1 the source is wrong (why is on stderr, with places in the original source);
2 usage; 3 the tool chain failed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "common"))
sys.path.append(str(Path(__file__).resolve().parents[2] / "cpu" / "driver"))

from builds import publish
from cuda_architectures import architecture
from cuda_builds import build_cuda_kernel
from cuda_hosts import find_host
from cuda_tools import find_cuda
from faults import SourceFault, ToolchainFault


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        _build(options)
    except SourceFault as fault:
        print(fault, file=sys.stderr)
        return 1
    except (ToolchainFault, OSError) as fault:
        print(f"hipcuda: {fault}", file=sys.stderr)
        return 3
    return 0


def _build(options: argparse.Namespace) -> None:
    cuda = find_cuda(options.compiler)
    if options.command == "runtime":
        publish(cuda.runtime, options.output)
        return
    kernels = build_cuda_kernel(
        options.source,
        options.output,
        cuda,
        find_host(options.host, options.headers),
        architecture(options.arch),
        include=options.include,
        entries=options.entry,
        places=options.output.with_suffix(".places.json") if options.sanitize else None,
    )
    for kernel in kernels:
        print(json.dumps(kernel.to_json(), sort_keys=True))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hipcuda.py", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    kernel = commands.add_parser("kernel", help="a HIP source to a shared library")
    kernel.add_argument("source", type=Path, metavar="SRC")
    kernel.add_argument("--arch", required=True, metavar="sm_NN")
    kernel.add_argument("--host", required=True, metavar="zig:DIR|cxx:PATH")
    kernel.add_argument("--headers", type=Path, metavar="DIR", help="the C++ library's, for zig")
    kernel.add_argument("--include", type=Path, action="append", default=[], metavar="DIR")
    kernel.add_argument(
        "--entry", action="append", default=[], metavar="NAME", help="a required function"
    )
    kernel.add_argument(
        "--sanitize",
        action="store_true",
        help="have the code name its lines, for tools that watch it; also makes OUT.places.json",
    )
    runtime = commands.add_parser("runtime", help="CUDA's runtime library, for kernels")
    for command in (kernel, runtime):
        command.add_argument("-o", dest="output", type=Path, required=True, metavar="OUT")
        command.add_argument("--compiler", required=True, metavar="nvcc:DIR")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
