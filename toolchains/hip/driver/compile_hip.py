"""Compile HIP.

    python compile_hip.py PLATFORM kernel SRC.hip -o OUT.so --compiler KIND:DIR [--entry NAME]
    python compile_hip.py PLATFORM runtime -o LIBRARY --compiler KIND:DIR

Exit codes: 0 done; 1 the source is wrong (why is on stderr, with places in the original source);
2 usage; 3 the tool chain failed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path += [str(Path(__file__).resolve().parents[1] / part) for part in ("common", "host")]

from faults import SourceFault, ToolchainFault
from hip_platforms import HipPlatform, Request, find_platforms


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    platforms = find_platforms()
    options = _parser(platforms).parse_args(arguments)
    try:
        _build(platforms[options.platform], options)
    except SourceFault as fault:
        print(fault, file=sys.stderr)
        return 1
    except (ToolchainFault, OSError) as fault:
        print(f"hip: {fault}", file=sys.stderr)
        return 3
    return 0


def _build(platform: HipPlatform, options: argparse.Namespace) -> None:
    if options.command == "runtime":
        assert platform.build_runtime
        platform.build_runtime(options)
        return
    places = options.output.with_suffix(".places.json")
    request = Request(
        options.source,
        options.output,
        options.compiler,
        options.include,
        options.entry,
        places if platform.watched and options.sanitize else None,
        options,
    )
    for kernel in platform.build_kernel(request):
        print(json.dumps(kernel.to_json(), sort_keys=True))


def _parser(platforms: Mapping[str, HipPlatform]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="compile_hip.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    chosen = parser.add_subparsers(dest="platform", required=True)
    for name, platform in platforms.items():
        commands = chosen.add_parser(name, help=platform.doc).add_subparsers(
            dest="command", required=True
        )
        kernel = commands.add_parser("kernel", help="a HIP source to a shared library")
        kernel.add_argument("source", type=Path, metavar="SRC")
        kernel.add_argument("-o", dest="output", type=Path, required=True, metavar="OUT")
        platform.add_options(kernel)
        kernel.add_argument("--include", type=Path, action="append", default=[], metavar="DIR")
        if platform.build_runtime:
            runtime = commands.add_parser("runtime", help="what kernels need when they run")
            runtime.add_argument("-o", dest="output", type=Path, required=True, metavar="OUT")
            platform.add_compiler(runtime)
            platform.add_runtime_options(runtime)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
