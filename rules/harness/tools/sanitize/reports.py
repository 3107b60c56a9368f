"""Reads the XML reports of NVIDIA's compute-sanitizer.

The report has passed through the candidate's sandbox, so it is untrusted: text of a known form, cut
short and made printable, that concerns only the candidate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from alone.said import Allocation
from terms.reasons import Reason

from sanitize.findings import Finding
from sanitize.places import Place, Places

_OWN_FILE = re.compile(r"(?:.*/)?(kernel\.hip|headers/\d+/[^/]+)")
_NEAR = 1 << 20
"""An address that is more bytes than this from every tensor is near none."""
_MOST_RECORDS = 1000
_MOST_TEXT = 300
_GLOBAL = "__global__"


class ReportError(ValueError):
    """A file that is not a report of compute-sanitizer."""


def read_report(
    report: bytes, kind: Reason, memory: Sequence[Allocation], places: Places
) -> list[Finding]:
    """The findings of one tool, all of ``kind``.

    Raises ReportError for anything but such a report.
    """
    if b"<!" in report:
        raise ReportError("a report must not declare entities")
    try:
        root = ElementTree.fromstring(report)  # noqa: S314 - no entities, as just checked
    except ElementTree.ParseError as error:
        raise ReportError(str(error)) from None
    records = [record for record in root.iter("record") if record.find(".//where") is not None]
    return [_finding(record, kind, memory, places) for record in records[:_MOST_RECORDS]]


def _finding(
    record: Element, kind: Reason, memory: Sequence[Allocation], places: Places
) -> Finding:
    source, other = record.find("what/source"), record.find("what/destination")
    if source is not None and other is not None:
        there = _place(other, places)
        text = (
            f"{_text(source, 'direction').lower() or 'access'} here, and "
            f"{_text(other, 'direction').lower() or 'access'} at {there or 'another place'} "
            "by another thread, with nothing between them"
        )
        return Finding(kind, _text(source, "where/func"), _place(source, places), there, text)
    text = ", by ".join(filter(None, (_what(record, memory), " ".join(_who(record)))))
    return Finding(kind, _text(record, "where/func"), _place(record, places), None, text)


def _what(record: Element, memory: Sequence[Allocation]) -> str:
    said = _text(record, "what/text")
    address, size = _text(record, "what/address"), _text(record, "what/size")
    space = _text(record, "what/space") or (_GLOBAL if _GLOBAL in said else "")
    if not address or space != _GLOBAL:
        return said
    direction = _text(record, "what/direction") or "read"
    what = f"{direction} of {size} bytes"
    if _text(record, "what/error") == "misaligned":
        what = f"misaligned {what}"
    try:
        number = int(address, 16)
    except ValueError:
        return said
    near = min(memory, key=lambda allocation: allocation.distance(number), default=None)
    if near is None or near.distance(number) > _NEAR:
        return f"{what} at {number:#x}, far from every tensor"
    return f"{what}, {near.where(number)}"


def _who(record: Element) -> Iterator[str]:
    for name, tag in (("block", "blockIdx"), ("thread", "threadIdx")):
        index = record.find(f"who/{tag}")
        if index is not None:
            numbers = ",".join(_text(index, axis) for axis in "xyz")
            yield f"{name} ({numbers})"


def _place(element: Element, places: Places) -> Place | None:
    file, line = _OWN_FILE.fullmatch(_text(element, "where/path")), _text(element, "where/line")
    return places.find(f"at:{file[1]}:{line}:1") if file else None


def _text(element: Element, path: str) -> str:
    shown = "".join(c if c.isprintable() else "?" for c in element.findtext(path, ""))
    return shown[:_MOST_TEXT]
