"""Specifications refuse nonsense; output buffers and messages keep what they are given."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.sandbox import Completed, Limit, SandboxLimits, SandboxSpec, protocol
from kabuild.sandbox.output import BoundedOutput


def spec(**changes: object) -> SandboxSpec:
    values: dict[str, object] = {
        "argv": ("/bin/true",),
        "env": {},
        "input_dir": Path("/in"),
        "outputs": (),
        "collect_into": Path("/c"),
        **changes,
    }
    return SandboxSpec(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize("argv", [(), ("",)])
def test_a_command_needs_a_program(argv: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="argv is empty"):
        spec(argv=argv)


@pytest.mark.parametrize(
    "output",
    ["out", "file", "/out/x", "out/../x", "out//x", "./out/x", "out/x/", "", "out/a/../../b"],
)
def test_outputs_lie_plainly_below_out(output: str) -> None:
    with pytest.raises(ValueError, match="is not a plain path below out/"):
        spec(outputs=(output,))


@pytest.mark.parametrize("output", ["out/x", "out/a/b.c", "out/..x"])
def test_plain_outputs_are_accepted(output: str) -> None:
    assert spec(outputs=(output,)).outputs == (output,)


def test_mounts_are_absolute() -> None:
    with pytest.raises(ValueError, match="mount 'usr' is not an absolute path"):
        spec(mounts=("usr",))


@pytest.mark.parametrize("name", [*vars(SandboxLimits())])
@pytest.mark.parametrize("value", [0, -1])
def test_limits_are_positive(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"limit {name} must be positive, got {value}"):
        SandboxLimits(**{name: value})


@pytest.mark.parametrize(
    ("exit_code", "limit", "cancelled", "ok"),
    [
        (0, None, False, True),
        (1, None, False, False),
        (None, Limit.WALL, False, False),
        (None, None, True, False),
    ],
)
def test_only_an_undisturbed_zero_is_ok(
    exit_code: int | None, limit: Limit | None, *, cancelled: bool, ok: bool
) -> None:
    completed = Completed(
        exit_code=exit_code,
        signal=None if exit_code is not None else 9,
        limit=limit,
        cancelled=cancelled,
        stdout=b"",
        stderr=b"",
        wall_seconds=1.0,
        cpu_seconds=1.0,
        max_rss_bytes=1,
        outputs=(),
        hermetic=True,
    )

    assert completed.ok is ok
    assert completed.timed_out is (limit is Limit.WALL)


@given(limit=st.integers(1, 50), parts=st.lists(st.binary(max_size=40), max_size=12))
def test_output_keeps_both_ends_whatever_the_pieces(limit: int, parts: list[bytes]) -> None:
    kept, whole = BoundedOutput(limit), b"".join(parts)
    for part in parts:
        kept.add(part)
    head, tail = limit - limit // 2, limit // 2

    assert kept.total == len(whole)
    if len(whole) <= limit:
        assert kept.value() == whole
    else:
        marker = b"\n[... %d bytes omitted ...]\n" % (len(whole) - limit)
        assert kept.value() == whole[:head] + marker + whole[len(whole) - tail :]


@given(message=st.dictionaries(st.text(), st.integers() | st.text() | st.none(), max_size=5))
def test_messages_arrive_whole(message: dict[str, object]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        protocol.send(ours, message)
        protocol.send(ours, {"next": 1})

        assert protocol.receive(theirs) == (message, [])
        assert protocol.receive(theirs) == ({"next": 1}, [])


def test_descriptors_travel_with_their_message() -> None:
    ours, theirs = socket.socketpair()
    read, write = os.pipe()
    with ours, theirs:
        protocol.send(ours, {"first": 1}, [write])
        protocol.send(ours, {"second": 2})
        os.close(write)
        received = protocol.receive(theirs)
        assert received is not None
        message, (fd,) = received
        os.write(fd, b"through")

        assert (message, os.read(read, 10), os.get_inheritable(fd)) == (
            {"first": 1},
            b"through",
            False,
        )
        assert protocol.receive(theirs) == ({"second": 2}, [])
    os.close(fd)
    os.close(read)


def test_a_closed_connection_is_no_message() -> None:
    ours, theirs = socket.socketpair()
    ours.close()
    with theirs:
        assert protocol.receive(theirs) is None


@pytest.mark.parametrize("size", [2, 4, 6])
def test_a_connection_that_breaks_within_a_message_is_an_error(size: int) -> None:
    ours, theirs = socket.socketpair()
    ours.sendall(b"\x00\x00\x00\x09{}"[:size])
    ours.close()
    with theirs, pytest.raises(ConnectionResetError):
        protocol.receive(theirs)
