"""Where a Python program's files are in its sandbox, beside the program."""

from __future__ import annotations

ADAPTER = "/adapter/adapter.py"
MODULES = "/modules"
BINARIES = "/binaries/kernels.json"
