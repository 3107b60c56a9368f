"""A container is read whole or refused, and takes memory in proportion to itself."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tracemalloc
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kabuild.base.bounded_json import bounded_json
from kabuild.base.container import Container, DamagedError, Packer, opened
from tests.testkit.examples import examples

MEMBERS = {"head": b'{"a": 1}', "empty": b"", "blob": bytes(range(256)) * 17}
MOST_MEMORY = 300 << 20


def packed(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    packer = Packer(file, 3)
    for name, data in members.items():
        packer.add(name, data)
    assert packer.finish() == len(file.getvalue())
    return file.getvalue()


def read(data: bytes) -> dict[str, bytes]:
    container = Container(io.BytesIO(data), len(data))
    found = {}
    while (member := container.next()) is not None:
        found[member[0]] = container.content(member[1])
    return found


WHOLE = packed(MEMBERS)


def test_what_is_packed_is_read() -> None:
    assert read(WHOLE) == MEMBERS
    assert packed(MEMBERS) == WHOLE


@pytest.mark.parametrize("cut", range(1, len(WHOLE)))
def test_one_that_lacks_a_byte_is_refused(cut: int) -> None:
    with pytest.raises(DamagedError):
        read(WHOLE[:-cut])


@pytest.mark.parametrize(
    "more", [b"x", b"\0", b"\n", WHOLE, zstandard.compress(b""), b"\x50\x2a\x4d\x18\0\0\0\0"]
)
def test_one_with_a_byte_more_is_refused(more: bytes) -> None:
    """Also another frame, an empty one, and one that readers skip."""
    with pytest.raises(DamagedError):
        read(WHOLE + more)


@pytest.mark.parametrize("change", [lambda tar: tar[:-512], lambda tar: tar + bytes(512)])
def test_its_end_is_where_tar_ends(change: object) -> None:
    tar = zstandard.ZstdDecompressor().decompressobj().decompress(WHOLE)
    assert read(zstandard.compress(tar)) == MEMBERS
    with pytest.raises(DamagedError):
        read(zstandard.compress(change(tar)))  # type: ignore[operator]


@settings(max_examples=examples(80), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, len(WHOLE) - 1), byte=st.integers(1, 255))
def test_a_changed_byte_is_noticed_or_means_nothing(at: int, byte: int) -> None:
    changed = bytearray(WHOLE)
    changed[at] ^= byte
    with contextlib.suppress(DamagedError):
        assert read(bytes(changed)) == MEMBERS


def test_a_bomb_takes_little_memory() -> None:
    """Hundreds of MB of zeros, in blocks of four bytes each."""
    size = 1 << 29
    compressor = zstandard.ZstdCompressor(level=19).compressobj()
    chunk = bytes(1 << 20)
    made = bytearray(compressor.compress(chunk))
    for _ in range(size >> 20):
        made += compressor.compress(chunk)
    made += compressor.flush()
    tracemalloc.start()
    with pytest.raises(DamagedError):
        list(Container(io.BytesIO(made), len(made)).chunks(size))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MOST_MEMORY


def test_a_head_is_small_for_its_file() -> None:
    data = packed({"manifest": bytes(4 << 20)})
    with pytest.raises(DamagedError, match="too many for such a file"):
        Container(io.BytesIO(data), len(data)).head("manifest")
    honest = os.urandom(4 << 20)
    data = packed({"manifest": honest})
    assert Container(io.BytesIO(data), len(data)).head("manifest") == honest


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(OSError, match="device or a pipe"), opened(path):
            pass


@pytest.mark.parametrize("size", [1 << 20, 1 << 40])
def test_a_hole_at_its_end_makes_no_room(tmp_path: Path, size: int) -> None:
    """A file of kilobytes that claims a terabyte could unpack to hundreds of them."""
    path = tmp_path / "one.kab"
    path.write_bytes(packed({"manifest": bytes(4 << 20)}))
    os.truncate(path, size)
    with pytest.raises(DamagedError, match="are a hole"), opened(path) as container:
        container.head("manifest")


@pytest.mark.parametrize(
    "text",
    [
        "[" + ",".join(["{}"] * 200_000) + "]",
        "[" + ",".join(["0"] * 200_000) + "]",
        "[" * 5_000 + "]" * 5_000,
        '{"a":' * 3_000 + "0" + "}" * 3_000,
        "1" * 10_000,
        "\udcff",
        "",
    ],
)
def test_json_that_is_all_structure_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"it |Expecting|Exceeds|utf-8"):
        bounded_json(text.encode(errors="surrogateescape"))


def test_honest_json_is_read() -> None:
    value = {"blobs": {os.urandom(32).hex(): n for n in range(20_000)}, "small": [[], {}] * 100}
    assert bounded_json(json.dumps(value, separators=(",", ":")).encode()) == value


def test_damaged_data_is_told_once(tmp_path: Path) -> None:
    """Those who open one say that it cannot be unpacked."""
    path = tmp_path / "one.kab"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + b"\xff" * 64)

    with opened(path) as container, pytest.raises(DamagedError, match="compressed data is") as told:
        container.head("manifest.json")
    assert "unpacked" not in str(told.value)


@pytest.mark.parametrize(
    "text", ["NaN", "[-Infinity]", "1e999", "-1e400", '"\\ud800"', '{"\\uDFFF": 1}', '"\ud800"']
)
def test_json_that_nobody_could_write_again_is_refused(text: str) -> None:
    """What comes from others is compared and handed on."""
    with pytest.raises(ValueError, match=r"not JSON|is out of range|UTF-16"):
        bounded_json(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e300", 1e300),
        ('"\\ud83d\\ude00"', "\U0001f600"),
        ('"NaN"', "NaN"),
        ('"\\\\ud800"', r"\ud800"),
    ],
)
def test_json_that_only_looks_like_it_is_read(text: str, value: object) -> None:
    assert bounded_json(text) == value


def test_numbers_of_a_model_may_be_infinite() -> None:
    assert bounded_json("[-Infinity]", non_finite=True) == [float("-inf")]


@pytest.mark.parametrize("levels", [201, 400, 970, 2000])
def test_json_that_others_could_not_walk_is_refused(levels: int) -> None:
    """Python's own limit depends on who asks."""
    with pytest.raises(ValueError, match="nested too deeply"):
        bounded_json('{"a": ' * (levels - 1) + "[1]" + "}" * (levels - 1))


def test_json_may_be_nested() -> None:
    text = "[" * 200 + "1" + "]" * 200

    assert json.dumps(bounded_json(text)) == text


def test_a_file_that_cannot_be_read_is_named() -> None:
    """The kernel reads no memory at address 0."""
    with (
        pytest.raises(OSError, match="Input/output error: '/proc/self/mem'"),
        opened(Path("/proc/self/mem")) as container,
    ):
        container.head("manifest")


def test_a_file_that_can_be_read_is_not_at_fault_for_others(tmp_path: Path) -> None:
    file = tmp_path / "x.kcache"
    file.write_bytes(b"")
    with pytest.raises(OSError, match="no room") as caught, opened(file):
        raise OSError(28, "no room")
    assert caught.value.filename is None
