"""How many actions a second BuildGrid hands out, to workers that do nothing.

    python tests/bench/bench_dispatch.py [ACTIONS] [WORKERS] [CAPACITY]

Server, database, workers and clients are on this machine. Needs what ``make fleet`` needs, with
BuildGrid's ``bgd`` on the PATH.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))

from kabuild.model.digest import Digest
from kabuild.remote.client import RemoteCache
from kabuild.remote.endpoint import Endpoint
from kabuild.remote.patience import Patience
from kabuild.store import Store, merkle
from tests.testkit.buildgrid import a_server

CLIENTS = 64
PROPERTIES = [("OSFamily", "linux"), ("pool", "cpu")]
PATIENCE = Patience(600.0, 600.0, 60.0)


def actions(program: Path, count: int, store: Store) -> list[Digest]:
    """Different actions that start ``program``; their blobs are in ``store``."""
    platform = merkle.platform_message(PROPERTIES)
    root = store.cas.put(merkle.build([]).wire)
    made = []
    for number in range(count):
        command = merkle.command_message([str(program), str(number)], {}, (), platform)
        message = merkle.action_message(store.cas.put(command), root, 60.0, platform)
        made.append(store.cas.put(message))
    return made


def spent(idle: int) -> dict[str, float]:
    """Seconds of processor so far, by part; ``idle`` is the process of the workers."""
    seconds: dict[str, float] = defaultdict(float, clients=time.process_time())
    for process in psutil.process_iter(["cmdline", "cpu_times", "pid"]):
        line = " ".join(process.info["cmdline"] or ())
        is_server = "bgd server start" in line
        part = "bgd" if is_server else "postgres" if line.startswith("postgres:") else ""
        part = "workers" if process.info["pid"] == idle else part
        if part and process.info["cpu_times"]:
            seconds[part] += process.info["cpu_times"].user + process.info["cpu_times"].system
    return seconds


def main(count: int, workers: int, capacity: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        program = root / "bin/kabuild-worker-exec"
        with a_server(root, program) as fleet, Store.open(root / "store") as store:
            made = actions(program, count, store)
            idle = subprocess.Popen(
                [
                    sys.executable,
                    str(Path(__file__).parent / "idle_workers.py"),
                    *map(str, (fleet.port, workers, capacity)),
                ]
            )
            try:
                with RemoteCache.connect(Endpoint.of(fleet.url)) as server:
                    server.blobs.upload([*made, *_commands(made, store)], store.cas)
                    run(server, made, idle.pid, workers, capacity)
            finally:
                idle.kill()
                idle.wait()


def _commands(made: Sequence[Digest], store: Store) -> list[Digest]:
    """The other blobs of the store: commands and the root."""
    found = [Digest(file.name, file.stat().st_size) for file in (store.root / "cas").glob("*/*")]
    return [digest for digest in found if digest not in {*made}]


def run(
    server: RemoteCache, made: Sequence[Digest], idle: int, workers: int, capacity: int
) -> None:
    """Print how fast ``made`` ends, and who used the processors meanwhile."""
    before = spent(idle)
    began = time.perf_counter()

    def one(action: Digest) -> int:
        return server.executions.run(action, PATIENCE, stopped=lambda: False).code

    with ThreadPoolExecutor(CLIENTS) as pool:
        codes = [*pool.map(one, made)]
    seconds = time.perf_counter() - began
    assert codes == [0] * len(made), {*codes}
    used = {name: value - before.get(name, 0.0) for name, value in spent(idle).items()}
    shown = ", ".join(f"{name} {1e3 * value / len(made):.1f}" for name, value in used.items())
    print(
        f"{len(made)} actions by {workers} workers of {capacity}: {seconds:.1f} s, "
        f"{len(made) / seconds:.1f}/s; processor ms for each: {shown}"
    )


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:4]]
    main(*(given + [500, 8, 8][len(given) :]))
