"""The container in which HIP's runtime expects code objects inside a library."""

from __future__ import annotations

import struct
from collections.abc import Mapping

_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
_HOST = "host-x86_64-unknown-linux-gnu-"
_PAGE = 4096


def bundle(code_objects: Mapping[str, bytes]) -> bytes:
    """Code objects by architecture as one bundle; each begins on its own page."""
    entries = {_HOST: b""}
    for arch in sorted(code_objects):
        entries[f"hipv4-amdgcn-amd-amdhsa--{arch}"] = code_objects[arch]
    header = len(_MAGIC) + 8 + sum(24 + len(name) for name in entries)
    table, body = b"", b""
    start = header + -header % _PAGE
    for name, content in entries.items():
        body += b"\0" * (-len(body) % _PAGE)
        table += struct.pack("<QQQ", start + len(body), len(content), len(name)) + name.encode()
        body += content
    head = _MAGIC + struct.pack("<Q", len(entries)) + table
    return head.ljust(start, b"\0") + body
