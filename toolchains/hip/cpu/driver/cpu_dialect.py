"""How the CPU reads HIP: what it refuses, and what it rewrites."""

from __future__ import annotations

from rewriter import rewrite
from sources import Dialect
from unsupported import refuse_unsupported, unsupported_library

CPU = Dialect(refuse_unsupported, rewrite, unsupported_library)
