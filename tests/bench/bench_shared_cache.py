"""How fast results come from a shared cache: lookups, imports, uploads, on this machine's loopback.

    python tests/bench/bench_shared_cache.py [COUNT]

Needs buildbox-casd: ``make fleet`` gets it. One result has one output of 4 KiB, as a verdict has.
The last import is from a server at a distance of 20 ms there and back. Each line has the seconds of
the clock, and those of the processor in this process: the rest is the server, and other programs.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from kabuild.execution.prepared import Prepared, prepare
from kabuild.execution.shared import SharedCache
from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult, OutputFile
from kabuild.remote.client import RemoteCache
from kabuild.remote.endpoint import Endpoint
from kabuild.store import Store
from kabuild.store.merkle import build
from tests.testkit.actions import command
from tests.testkit.casd import running
from tests.testkit.distance import at_a_distance
from tests.testkit.machines import READER, WRITER

COUNT = 5000
ROUND_TRIP = 0.020


@contextmanager
def timed(what: str, count: int) -> Iterator[None]:
    began, used = time.perf_counter(), time.process_time()
    yield
    seconds, used = time.perf_counter() - began, time.process_time() - used
    print(f"{what:45} {seconds:6.2f} s  {count / seconds:8.0f}/s  processor {used:5.2f} s")


def prepared(number: int) -> Prepared:
    return prepare(command(f"a{number}", "run", str(number)), build([]))


def main(count: int) -> None:
    source = random.Random(0)
    actions = [prepared(number) for number in range(count)]
    keys = [item.key for item in actions]
    with tempfile.TemporaryDirectory() as name, running(Path(name) / "casd") as casd:
        endpoint = Endpoint.of(casd.url)
        with Store.open(Path(name) / "one") as store:
            results = [
                ActionResult(0, (OutputFile("result", store.cas.put(source.randbytes(4096))),))
                for _ in actions
            ]
            for item in actions:
                store.cas.put(item.message)
                store.cas.put(item.command)
            with timed(f"send {count} results", count):
                connect = RemoteCache.connect
                with SharedCache(store, WRITER, lambda: connect(endpoint), warn=print) as shared:
                    for item, result in zip(actions, results, strict=True):
                        shared.offer(item, result)
        with RemoteCache.connect(endpoint) as cache:
            with timed(f"look up {count} keys, all there", count):
                found = cache.results.get_many(keys)
            with timed(f"check {count} signatures", count):
                said = [
                    READER.trusted.check(key, entry or b"", time.time())
                    for key, entry in zip(keys, found, strict=True)
                ]
            assert all(isinstance(item, bytes) for item in said)
            absent = [Digest.of(str(number).encode()) for number in range(count)]
            with timed(f"look up {count} keys, none there", count):
                assert cache.results.get_many(absent) == [None] * count
            with timed(f"ask for {count} missing blobs", count):
                assert len(cache.blobs.missing(absent)) == count
        take_over(Path(name) / "two", endpoint, actions, "import")
        with at_a_distance(casd.port, ROUND_TRIP) as port:
            far = Endpoint.of(f"grpc://127.0.0.1:{port}")
            take_over(Path(name) / "three", far, actions, f"import at {ROUND_TRIP * 1e3:.0f} ms")


def take_over(root: Path, endpoint: Endpoint, actions: Sequence[Prepared], what: str) -> None:
    """Import the results of ``actions`` into an empty store."""
    with Store.open(root) as store:
        shared = SharedCache(store, READER, lambda: RemoteCache.connect(endpoint), warn=print)
        with timed(f"{what} {len(actions)} results, empty store", len(actions)), shared:
            shared.fetch(actions)
        assert all(store.actions.get(item.key) for item in actions)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else COUNT)
