"""The verdicts that a bundle holds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from kabuild.bundle.manifest import Record, damaged
from kabuild.model.action import VERDICT_FILE
from kabuild.model.digest import Digest


def verdicts(
    records: Sequence[Record], get: Callable[[Digest], bytes]
) -> Mapping[str, Mapping[str, int]]:
    """How many gates ended with each verdict, by gate, in the order of the records.

    Raises BundleError for what is no verdict.
    """
    counts: dict[str, Counter[str]] = {}
    for record in records:
        file = record.file(VERDICT_FILE)
        if not record.gate or file is None:
            continue
        try:
            verdict = json.loads(get(file.digest))["verdict"]
        except (ValueError, KeyError, TypeError):
            raise damaged(f"the verdict of {record.label} is none") from None
        counts.setdefault(record.gate, Counter())[str(verdict)] += 1
    return counts
