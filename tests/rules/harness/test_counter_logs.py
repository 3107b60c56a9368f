"""What profilers have written, read as the text of a stranger."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

import pytest
from counters import nsight, rocprof
from counters.findings import find
from counters.launches import MOST_LAUNCHES, Launch, number, plain_name
from hypothesis import given
from hypothesis import strategies as st
from terms.verdict import canonical_json


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("void <unnamed>::softmax_rows<float>(const float *, int)", "softmax_rows<float>"),
        ("(anonymous namespace)::twice(float*)", "twice"),
        ("silu_kernel", "silu_kernel"),
        ("void a::b<c::d>(e)", "a::b<c::d>"),
        ("evil\x1b[2J", "evil?[2J"),
    ],
)
def test_a_kernel_is_named_without_its_parameters(symbol: str, name: str) -> None:
    assert plain_name(symbol) == name


NO_NUMBERS = ("", "-1", "nan", "inf", "1e999", "1.2.3", "9" * 30, "0x10", "1_0", ".")


@pytest.mark.parametrize(
    ("text", "value"),
    [("1,024.5", 1024.5), ("2e3", 2000.0), ("7", 7.0), *((text, None) for text in NO_NUMBERS)],
)
def test_only_numbers_that_a_device_may_count_are_read(text: str, value: float | None) -> None:
    assert number(text) == value


NUMBERS = ["1", "1e18", "-1e18", "1e-300", "-3", "(1, 1, 1)", "0.001", "9" * 18]
CELLS = st.text(max_size=12) | st.sampled_from(NUMBERS)
COLUMNS_OF = {
    nsight.read: ("ID", "Kernel Name", "Grid Size", "Block Size", "gpu__time_duration.sum"),
    rocprof.read: (
        *("Dispatch_Id", "Kernel_Name", "Grid_Size", "Workgroup_Size", "VGPR_Count"),
        *("Counter_Name", "Counter_Value", "Start_Timestamp", "End_Timestamp"),
    ),
}


@pytest.mark.parametrize("reads", COLUMNS_OF, ids=["nsight", "rocprof"])
@given(rows=st.lists(st.lists(CELLS, min_size=9, max_size=9), max_size=4))
def test_whatever_a_candidate_writes_can_be_told(
    reads: Callable[[str], list[Launch] | None], rows: list[list[str]]
) -> None:
    """Read, remarked on, and encoded: a log is as untrusted as the candidate."""
    columns = COLUMNS_OF[reads]
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([columns, *(r[: len(columns)] for r in rows)])

    launches = reads(out.getvalue()) or []

    told = [found.to_json() for found in find("f32 n=1", launches)]
    assert canonical_json({"launches": [one.to_json() for one in launches], "findings": told})
    assert all(one.kernel.isprintable() or not one.kernel for one in launches)


@pytest.mark.parametrize("reads", COLUMNS_OF, ids=["nsight", "rocprof"])
def test_a_log_without_end_is_read_in_part(
    reads: Callable[[str], list[Launch] | None],
) -> None:
    columns = COLUMNS_OF[reads]
    head = ",".join(f'"{name}"' for name in columns)
    row = ",".join(['"{0}"', *['"7"'] * (len(columns) - 1)])
    many = "\n".join([head, *(row.format(i) for i in range(1, 3 * MOST_LAUNCHES))])

    assert len(reads(many) or ()) == MOST_LAUNCHES + 1
    assert not reads(f'{head}\n"{"x" * (1 << 20)}"')


@pytest.mark.parametrize(
    "log",
    ["", '"ID"\n', '"ID","Kernel Name"\n"0","k"\n', "\x00\xff", '"ID","Kernel Name","Grid Size"'],
)
def test_a_log_of_another_form_has_no_launches(log: str) -> None:
    assert nsight.read(log) == []
