"""How many actions a second BuildGrid hands out to workers that do nothing, and casd executes.

    python tests/bench/bench_dispatch.py buildgrid [ACTIONS] [WORKERS] [CAPACITY] [SERVERS]
    python tests/bench/bench_dispatch.py casd [ACTIONS] [JOBS]

Servers, database, workers and clients are on this machine; several servers share the database.
casd has no workers: it starts a runner and ``true`` for each action. Needs what ``make fleet``
needs, with BuildGrid's ``bgd`` on the PATH.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))

from kabuild.model.digest import Digest
from kabuild.remote.client import RemoteCache
from kabuild.remote.endpoint import Endpoint
from kabuild.remote.timeouts import Timeouts
from kabuild.store import Store, merkle
from tests.testkit.buildgrid import a_server
from tests.testkit.casd import running

CLIENTS = 64
PROPERTIES = [("OSFamily", "linux"), ("pool", "cpu")]
PATIENCE = Timeouts(600.0, 600.0, 60.0)


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
        part = "casd" if "buildbox-casd" in line else part
        part = "workers" if process.info["pid"] == idle else part
        if part and process.info["cpu_times"]:
            times = process.info["cpu_times"]
            seconds[part] += times.user + times.system
            seconds[part] += times.children_user + times.children_system
    return seconds


def buildgrid(count: int = 500, workers: int = 8, capacity: int = 8, servers: int = 1) -> None:
    """Have so many workers end ``count`` actions."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        with a_server(root, root / "kabuild-worker-exec", count=servers) as fleet:
            idle = subprocess.Popen(
                [
                    sys.executable,
                    str(Path(__file__).parent / "idle_workers.py"),
                    *map(str, (workers, capacity, *fleet.ports)),
                ]
            )
            try:
                urls = [f"grpc://127.0.0.1:{port}" for port in fleet.ports]
                measure(root, urls, fleet.program, count, idle.pid)
            finally:
                idle.kill()
                idle.wait()


def casd(count: int = 500, jobs: int = 8) -> None:
    """Have casd execute ``count`` actions."""
    with tempfile.TemporaryDirectory() as name, running(Path(name) / "casd", jobs=jobs) as server:
        measure(Path(name), [server.url], Path("/bin/true"), count, 0)


def measure(root: Path, urls: Sequence[str], program: Path, count: int, idle: int) -> None:
    """Send ``count`` actions to a server, and run them."""
    with Store.open(root / "store") as store, ExitStack() as stack:
        servers = [stack.enter_context(RemoteCache.connect(Endpoint.of(url))) for url in urls]
        made = actions(program, count, store)
        servers[0].blobs.upload([*made, *_commands(made, store)], store.cas)
        run(servers, made, idle)


def _commands(made: Sequence[Digest], store: Store) -> list[Digest]:
    """The other blobs of the store: commands and the root."""
    found = [Digest(file.name, file.stat().st_size) for file in (store.root / "cas").glob("*/*")]
    return [digest for digest in found if digest not in {*made}]


def run(servers: Sequence[RemoteCache], made: Sequence[Digest], idle: int) -> None:
    """Print how fast ``made`` ends, and who used the processors meanwhile."""
    before = spent(idle)
    began = time.perf_counter()

    def one(action: Digest, server: RemoteCache) -> int:
        return server.executions.run(action, PATIENCE, stopped=lambda: False).code

    with ThreadPoolExecutor(CLIENTS) as pool:
        codes = [*pool.map(one, made, cycle(servers))]
    seconds = time.perf_counter() - began
    assert codes == [0] * len(made), {*codes}
    used = {name: value - before.get(name, 0.0) for name, value in spent(idle).items()}
    shown = ", ".join(f"{name} {1e3 * value / len(made):.1f}" for name, value in used.items())
    print(
        f"{len(made)} actions: {seconds:.1f} s, "
        f"{len(made) / seconds:.1f}/s; processor ms for each: {shown}"
    )


def main(server: str, *numbers: str) -> None:
    """Measure one of the two servers."""
    if server == "casd":
        casd(*map(int, numbers))
    else:
        buildgrid(*map(int, numbers))


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["buildgrid"]))
