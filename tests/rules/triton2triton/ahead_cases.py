"""Compiles modules ahead of time, in one process that has PyTorch and Triton, as gates' do.

    python ahead_cases.py TOOLS SPEC MODULE...

Prints one JSON object: what came of each module, by its name.
"""

import json
import sys
from pathlib import Path


def main(tools: str, spec: str, *modules: str) -> None:
    """Compile each in turn."""
    sys.path.insert(0, tools)
    import ahead
    import torch
    import triton
    from kernel_source import MachineFault

    assert torch
    assert triton
    patience = ahead._SECONDS
    found = {}
    for module in map(Path, modules):
        ahead._SECONDS = 2.0 if module.stem == "hangs" else patience
        try:
            text = module.read_text("utf-8")
            found[module.stem] = vars(ahead.compile_ahead(text, Path(spec)))
        except MachineFault as fault:
            found[module.stem] = {"fault": str(fault)}
    print(json.dumps(found))


main(*sys.argv[1:])
