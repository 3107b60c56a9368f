"""Files that others hand over: bundles, exports, run directories of AgentKernelArena."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
import zstandard

from tests.hostile.draw import Draw
from tests.hostile.ground import Ground
from tests.hostile.kinds.kind import Kind
from tests.hostile.oracle import Rules
from tests.hostile.trees import changed
from tests.testkit.bundles import Members, read_members, write_members

BUNDLE, EXPORT = "made.kab", "made.kcache"
_MODEST = Rules(memory=400 << 20)
_ON_BUNDLES: tuple[tuple[str, ...], ...] = (
    *(("verify", BUNDLE), ("verify", BUNDLE), ("replay", BUNDLE), ("replay", BUNDLE, "--json")),
    *(
        ("report", BUNDLE, "--format=md"),
        ("report", BUNDLE, "--format=json"),
        ("replay", BUNDLE, "--sample=2"),
    ),
    *(
        ("report", BUNDLE, "--format=html", "-o", "page.html"),
        ("report", BUNDLE, "--format=arena", "-o", "a"),
    ),
    *(("compare", BUNDLE, BUNDLE), ("report", BUNDLE, "--format=csv")),
)


def play_bundle(draw: Draw, ground: Ground) -> None:
    """A damaged bundle is never called whole; one that was made again by somebody may be."""
    path = ground.root / BUNDLE
    before = path.read_bytes()
    raw = draw.chance(0.4)
    path.write_bytes(damaged(draw, before) if raw else remade(draw, path, "manifest.json"))
    same = _same(path.read_bytes(), before)
    asked = draw.choice(_ON_BUNDLES)
    ended = ground.run(ground.call(*asked), _MODEST)
    if raw and not same:
        ground.expect(
            holds=ended.code != 0,
            what="a damaged bundle was taken",
            detail=f"{asked}\n{ended.text}",
        )


def play_export(draw: Draw, ground: Ground) -> None:
    """What a damaged export holds is refused; whatever was taken, verdicts stay right."""
    path = ground.root / EXPORT
    before = path.read_bytes()
    raw = draw.chance(0.5)
    path.write_bytes(damaged(draw, before) if raw else remade(draw, path, "manifest.json"))
    same = _same(path.read_bytes(), before)
    expected = ground.truth
    ground.store = ground.store.with_name("other")
    ended = ground.run(ground.call("cache", "import", EXPORT), _MODEST)
    if raw and not same:
        ground.expect(holds=ended.code != 0, what="a damaged export was taken", detail=ended.text)
    if ended.code == 0:
        found = ground.verdicts()
        ground.expect(
            holds=found == expected, what="wrong verdicts after an import", detail=f"{found}"
        )
    ground.store = ground.store.with_name("store")


def _same(data: bytes, before: bytes) -> bool:
    """Whether nothing was damaged after all: one frame, nothing behind it, the same content."""
    unpacker = zstandard.ZstdDecompressor().decompressobj()
    try:
        content = unpacker.decompress(data)
    except zstandard.ZstdError:
        return False
    whole = unpacker.eof and not unpacker.unused_data
    return whole and content == zstandard.ZstdDecompressor().stream_reader(before).read()


def damaged(draw: Draw, data: bytes) -> bytes:
    """The file with bytes changed, cut off, or added."""
    match draw.randint(0, 5):
        case 0:
            return data[: -draw.choice((1, 2, 4, 100))]
        case 1:
            return data + draw.choice(
                (b"\0", b"x" * 9, zstandard.compress(b"more"), data, b"\0" * 5000)
            )
        case 2:
            return _frames(draw, data)
        case 3:
            found = bytearray(data)
            for _ in range(draw.choice((1, 1, 4))):
                found[draw.randrange(len(found))] ^= 1 << draw.randint(0, 7)
            return bytes(found)
        case _:
            return draw.damaged(data)


def _frames(draw: Draw, data: bytes) -> bytes:
    """Frames of zstd that lie about what they hold, or hold too much."""
    plain = zstandard.ZstdDecompressor().stream_reader(data).read()
    bomb = zstandard.ZstdCompressor(level=1).compress(b"\0" * (draw.choice((1, 64, 300)) << 20))
    wide = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=draw.choice((10, 27, 30)))
    )
    skip = b"\x50\x2a\x4d\x18" + (1 << draw.choice((4, 31))).to_bytes(4, "little") + b"x" * 16
    makers: tuple[Callable[[], bytes], ...] = (
        lambda: bomb,
        lambda: data + bomb,
        lambda: bomb + data,
        lambda: skip + data,
        lambda: data + skip,
        lambda: wide.compress(plain + b"\0" * 10240),
        lambda: (
            zstandard.compress(plain[: len(plain) // 2])
            + zstandard.compress(plain[len(plain) // 2 :])
        ),
        lambda: zstandard.compress(plain + plain),
        lambda: plain,
        lambda: zstandard.compress(data),
        lambda: zstandard.compress(b""),
        lambda: zstandard.compress(draw.damaged(plain)),
    )
    return draw.choice(makers)()


def remade(draw: Draw, path: Path, manifest: str) -> bytes:
    """The file as somebody would pack it who knows the format: whole, but not true."""
    members = read_members(path)
    extra: list[tarfile.TarInfo] = []
    name = draw.choice([manifest, manifest, manifest, *members])
    match draw.randint(0, 5):
        case 0:
            members[name] = draw.damaged(members[name])
        case 1:
            del members[name]
        case 2:
            members[draw.choice(("../x", "/etc/x", "blobs/" + "0" * 64, "x" * 90, name + "x"))] = (
                b"x"
            )
        case 3:
            extra.append(_header(draw))
        case _:
            _edit(draw, members, manifest if draw.chance(0.7) else name)
    if draw.chance(0.1):
        members = dict(draw.sample(list(members.items()), len(members)))
    write_members(path, members, tuple(extra))
    return path.read_bytes()


def _edit(draw: Draw, members: Members, name: str) -> None:
    try:
        tree = json.loads(members[name])
    except ValueError:
        members[name] = draw.damaged(members[name])
        return
    if isinstance(tree, dict | list):
        members[name] = json.dumps(
            changed(draw, tree, lambda: _json_value(draw)), default=str
        ).encode()


def _json_value(draw: Draw) -> Any:
    if draw.chance(0.5):
        return draw.value()
    return draw.choice(
        (None, "0" * 64, f"{'0' * 64}/9", 2**70, -1, 10**400, "//a:b", [], {}, "PASS", "INFRA")
    )


def _header(draw: Draw) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(draw.choice(("../../x", "/tmp/x", "blobs/x", "link", "a" * 90)))
    entry.type = draw.choice(
        (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE)
    )
    entry.linkname = "/etc/passwd"
    entry.size = draw.choice((0, 1, 1 << 32))
    return entry


RECORD = {
    "task_name": "hip2hip/gpumode/SiLU",
    "pass_compilation": True,
    "compilation_error_message": None,
    "pass_correctness": True,
    "correctness_error_message": None,
    "base_execution_time": 0.4,
    "best_optimized_execution_time": 0.2,
    "speedup_ratio": 2.1,
    "benchmark_method_consistent": True,
    "valid_baseline_cases": 5,
    "valid_optimized_cases": 5,
}
_BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)
)
_YAML = (
    *(
        _BOMB,
        "!!python/object/apply:os.system ['touch /tmp/case/outside/x']",
        "a: *b",
        "? [a]\n: b",
    ),
    *(
        "a: " + "[" * 3000,
        "\t",
        "%YAML 9.9\n---\na: 1",
        "--- 1\n--- 2\n",
        "a: 1\na: 2",
        "x" * (2 << 20),
    ),
    *("speedup_ratio: 1:30", "pass_compilation: yes", "? " * 2000, "&a {a: *a}", "<<: &x {<<: *x}"),
)


def play_arena(draw: Draw, ground: Ground) -> None:
    """A run directory of AgentKernelArena."""
    run = ground.root / "arena"
    for number in range(draw.randint(1, 3)):
        folder = run / draw.choice(
            (f"t{number}", draw.text().replace("/", "_").replace("\0", "")[:80] or "x")
        )
        if folder.name in {".", ".."} or folder.exists():
            continue
        folder.mkdir(parents=True)
        text = (
            yaml.safe_dump(changed(draw, RECORD), allow_unicode=True)
            if draw.chance(0.6)
            else draw.choice(_YAML)
        )
        data = text.encode(errors="replace")
        (folder / "task_result.yaml").write_bytes(data if draw.chance(0.7) else draw.damaged(data))
    forms = ("md", "json", "csv", "html", "arena")
    asked = draw.choice(
        (
            ("report", "arena", f"--format={draw.choice(forms)}", "-o", "x"),
            ("compare", "arena", BUNDLE),
        )
    )
    if draw.chance(0.5):
        asked = ("report", "arena", f"--format={draw.choice(('md', 'json', 'csv'))}")
    ground.run(ground.call(*asked), _MODEST)


def bomb(size: int) -> bytes:
    """A tar of one member of zeros, as small as it gets."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        entry = tarfile.TarInfo("manifest.json")
        entry.size = size
        tar.addfile(entry, io.BytesIO(b"\0" * size))
    return zstandard.compress(buffer.getvalue())


def play_bomb(draw: Draw, ground: Ground) -> None:
    """Small files that would be large."""
    data = bomb(draw.choice((1, 40, 200, 400)) << 20)
    name = draw.choice((BUNDLE, EXPORT))
    (ground.root / name).write_bytes(data)
    asked = ("verify", name) if name == BUNDLE else ("cache", "import", name)
    ended = ground.run(ground.call(*asked), _MODEST)
    ground.expect(holds=ended.code != 0, what="a bomb was taken", detail=ended.text)


KINDS = (
    Kind("bundle", 2.0, play_bundle),
    Kind("export", 1.5, play_export),
    Kind("arena", 1.0, play_arena),
    Kind("bomb", 0.05, play_bomb),
)
