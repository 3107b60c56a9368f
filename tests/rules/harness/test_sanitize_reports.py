"""What a judge makes of compute-sanitizer's reports, whoever wrote them.

The records are what version 2025.3.1 wrote on an H200, but for names and addresses.
"""

from __future__ import annotations

import pytest
from alone.said import Allocation
from sanitize.places import Place, Places
from sanitize.reports import ReportError, read_report
from terms.reasons import Reason

PLACES = Places(
    {
        "schema": 1,
        "files": {"kernel.hip": {"name": "mine.hip", "lines": [[[1, 3, 1]], [[1, 7, 3]]]}},
        "code": [],
    }
)
MEMORY = (Allocation("x", 0x10000, 4000), Allocation("y", 0x12000, 4000))
WHO = """<who><threadIdx><x>232</x><y>0</y><z>0</z></threadIdx>
<blockIdx><x>3</x><y>0</y><z>0</z></blockIdx></who>"""
WHERE = (
    "<where><func>twice</func><path>/tmp/b/kernel.hip</path><line>{}</line><pc>0xc0</pc></where>"
)
ACCESS = f"""<record><kind>Precise</kind><level>Error</level>{WHO}<what>
<text>Invalid {{space}} read of size 4 bytes is out of bounds</text><space>{{space}}</space>
<size>4</size><direction>{{direction}}</direction><error>{{error}}</error>
<address>{{address}}</address></what>{WHERE.format(1)}</record>"""
FAILED = """<record><kind>Api</kind><what><text>Program hit error 719</text>
<api>cuCtxSynchronize</api><result>719</result></what></record>"""
UNWRITTEN = f"""<record><kind>Initcheck</kind>{WHO}<what>
<text>Uninitialized __global__ memory read of size 4 bytes</text>
<address>0x12004</address><size>4</size></what>{WHERE.format(2)}</record>"""
RACE = f"""<record><kind>Analysis</kind><level>Error</level><what><text>Race condition</text>
<source><direction>Write</direction>{WHERE.format(1)}</source>
<destination><direction>Read</direction>{WHERE.format(2)}<count>512</count></destination>
</what></record>"""
BY = ", by block (3,0,0) thread (232,0,0)"


def report(*records: str) -> bytes:
    inner = "".join(records)
    head = '<?xml version="1.0" encoding="utf-8"?>'
    return f"{head}<ComputeSanitizerOutput>{inner}</ComputeSanitizerOutput>".encode()


def access(
    address: str, space: str = "__global__", direction: str = "read", error: str = "out of bounds"
) -> bytes:
    return report(
        ACCESS.format(address=address, space=space, direction=direction, error=error), FAILED
    )


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (access("0x10fa0"), "read of 4 bytes, 0 bytes past the end of 'x' (4000 bytes)"),
        (
            access("0x11ffc", direction="write"),
            "write of 4 bytes, 4 bytes before the start of 'y' (4000 bytes)",
        ),
        (
            access("0x12002", error="misaligned"),
            "misaligned read of 4 bytes, at offset 2 of 'y' (4000 bytes)",
        ),
        (access("0x7f0000000000"), "read of 4 bytes at 0x7f0000000000, far from every tensor"),
        (
            access("0x10fa0", "__shared__"),
            "Invalid __shared__ read of size 4 bytes is out of bounds",
        ),
        (access("not a number"), "Invalid __global__ read of size 4 bytes is out of bounds"),
    ],
)
def test_an_address_is_told_from_the_nearest_tensor(content: bytes, text: str) -> None:
    """That a call failed afterwards is no mistake of its own."""
    (found,) = read_report(content, Reason.OUT_OF_BOUNDS, MEMORY, PLACES)

    assert (found.kind, found.kernel, found.text) == (Reason.OUT_OF_BOUNDS, "twice", text + BY)
    assert found.place == Place("mine.hip", 3, 1)


def test_a_race_has_both_places() -> None:
    (found,) = read_report(report(RACE), Reason.DATA_RACE, MEMORY, PLACES)

    assert (found.place, found.other) == (Place("mine.hip", 3, 1), Place("mine.hip", 7, 3))
    assert str(found) == (
        "mine.hip:3:1: DATA_RACE in twice: write here, and read at mine.hip:7:3 by another thread, "
        "with nothing between them"
    )


def test_a_read_of_what_nobody_wrote_names_the_tensor() -> None:
    (found,) = read_report(report(UNWRITTEN), Reason.UNINITIALISED, MEMORY, PLACES)

    assert found.text == f"read of 4 bytes, at offset 4 of 'y' (4000 bytes){BY}"
    assert found.place == Place("mine.hip", 7, 3)


def test_a_place_outside_the_authors_files_is_none() -> None:
    elsewhere = access("0x10fa0").replace(b"/tmp/b/kernel.hip", b"/usr/include/cuda_fp16.hpp")
    (found,) = read_report(elsewhere, Reason.OUT_OF_BOUNDS, MEMORY, PLACES)

    assert found.place is None


def test_nothing_found_is_no_finding() -> None:
    empty = b'<?xml version="1.0" encoding="utf-8"?>\n<ComputeSanitizerOutput/>'

    assert read_report(empty, Reason.DATA_RACE, MEMORY, PLACES) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<ComputeSanitizerOutput><record>",
        b"\xff\xfe\x00",
        b'<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;">]><a>&c;</a>',
    ],
)
def test_what_is_no_report_is_refused(content: bytes) -> None:
    with pytest.raises(ReportError):
        read_report(content, Reason.DATA_RACE, MEMORY, PLACES)


def test_hostile_text_is_cut_short_and_made_printable() -> None:
    loud = access("0x10fa0", space="local\x7f" + "x" * 5000)
    (found,) = read_report(loud, Reason.OUT_OF_BOUNDS, MEMORY, PLACES)

    assert len(found.text) < 400
    assert found.text.isprintable()
