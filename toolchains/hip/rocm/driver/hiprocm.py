"""Compile HIP for AMD's processors.

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

from architectures import ARCHITECTURES
from faults import SourceFault, ToolchainFault
from rocm_builds import build_rocm_kernel
from rocm_compilers import find_rocm_compiler


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        kernels = build_rocm_kernel(
            options.source,
            options.output,
            find_rocm_compiler(options.compiler, options.libraries),
            ARCHITECTURES[options.arch],
            include=options.include,
            entries=options.entry,
        )
    except SourceFault as fault:
        print(fault, file=sys.stderr)
        return 1
    except (ToolchainFault, OSError) as fault:
        print(f"hiprocm: {fault}", file=sys.stderr)
        return 3
    for kernel in kernels:
        print(json.dumps(kernel.to_json(), sort_keys=True))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hiprocm.py", description=__doc__)
    parser.add_argument("source", type=Path, metavar="SRC")
    parser.add_argument("-o", dest="output", type=Path, required=True, metavar="OUT")
    parser.add_argument("--arch", required=True, choices=sorted(ARCHITECTURES))
    parser.add_argument("--compiler", required=True, metavar="zig:DIR|rocm:DIR")
    parser.add_argument(
        "--libraries", type=Path, metavar="DIR", help="Triton's backends/amd, for zig"
    )
    parser.add_argument("--include", type=Path, action="append", default=[], metavar="DIR")
    parser.add_argument(
        "--entry", action="append", default=[], metavar="NAME", help="a required function"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
