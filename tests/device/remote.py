"""Whether a fleet judges as this machine does: keys, verdicts and bytes, on its own devices.

    KABUILD_PLATFORM=cuda python tests/device/remote.py DIR [TASK...]

A node (``kabuild worker serve``), the tests' own server and engine, and a client are on the
loopback of one machine, each with a store of its own. DIR gets a copy of the repository. The client
judges the expert of each task twice: here, and by the node. Prints what was compared as JSON, and
ends with 1 where keys or verdicts differ. Needs the extra ``fleet``, and protobuf.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from workplace import PLATFORM, Workplace

from kabuild.store import Store
from tests.testkit.fleet import require_fleet

require_fleet()

from kabuild.model.digest import Digest
from tests.testkit.engine import StagingEngine
from tests.testkit.reapi_server import ReapiServer
from tests.testkit.signers import allowed, private_key
from tests.testkit.workers import NODE, install_program

TASKS = ("//tasks/hip2hip/softmax", "//tasks/triton2triton/rmsnorm")
_TRUST = '\n[remote]\ntrusted_keys = "fleet.keys"\n'
_PATIENCE = 120.0
_SCORE = ".score"
"""Its inputs have measured times, which are other ones in each run."""


@contextmanager
def serving(place: Workplace, socket: Path) -> Iterator[None]:
    """A node of this platform, until the end."""
    key = place.root.parent / "node.key"
    key.write_bytes(private_key(NODE))
    flags = (f"--signing_key={key}", f"--socket={socket}", PLATFORM, "--drain=0")
    node = place.start("worker", "serve", *flags)
    try:
        assert node.stderr
        said = next((line for line in node.stderr if " serving " in line), "")
        if not said:
            raise SystemExit("the node does not serve")
        sys.stderr.write(said)
        told = threading.Thread(target=sys.stderr.writelines, args=(node.stderr,), daemon=True)
        told.start()  # a full pipe would stop the node
        yield
    finally:
        node.send_signal(signal.SIGTERM)
        try:
            node.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            node.kill()
            node.wait()


def files(store: Path, keys: Mapping[str, str]) -> Mapping[str, Any]:
    """The files of the results of ``keys`` in a store, by label."""
    with Store.open(store) as opened:
        found = {}
        for label, key in keys.items():
            size = (store / "cas" / key[:2] / key).stat().st_size
            result = opened.actions.get(Digest(key, size))
            kept = result.files if result else ()
            found[label] = sorted((file.path, str(file.digest)) for file in kept)
        return found


def verdicts(said: Mapping[str, Any]) -> Mapping[str, str]:
    """What ``kabuild test --json`` says of each gate."""
    return {f"{t['label']} {t['gate']}": str(t["verdict"]) for t in said["targets"] if t["gate"]}


def keys(said: Mapping[str, Any]) -> dict[str, str]:
    """The keys of all gates, by label."""
    return {item["label"]: item["key"] for item in said["targets"]}


def compare(folder: Path, tasks: Sequence[str]) -> dict[str, Any]:
    """Judge ``tasks`` on this machine and by its node, and say what is equal."""
    here = Workplace.make(folder)
    there, node = replace(here, store=folder / "there"), replace(here, store=folder / "node")
    (here.root / "fleet.keys").write_text(allowed(NODE))
    settings = here.root / "WORKSPACE.toml"
    if _TRUST not in settings.read_text():
        settings.write_text(settings.read_text() + _TRUST)
    socket = folder / "node.sock"
    program = install_program(folder / "bin", socket)
    with ReapiServer() as server, serving(node, socket):
        StagingEngine(server, folder / "staged")
        fleet = (f"--remote_executor={server.url}", f"--remote_worker_program={program}")
        local = here.test(*tasks, "--agent=expert")
        remote = there.test(*tasks, "--agent=expert", *fleet)
    said, told = verdicts(local.json), verdicts(remote.json)
    one, two = keys(local.json), keys(remote.json)
    bytes_here, bytes_there = files(here.store, one), files(there.store, two)
    return {
        "platform": PLATFORM.partition("=")[2],
        "codes": [local.code, remote.code],
        "seconds": [round(local.seconds, 1), round(remote.seconds, 1)],
        "verdicts": said,
        "verdicts_equal": bool(said) and said == told,
        "gates": len(one),
        "other_keys": [label for label in one | two if one.get(label) != two.get(label)],
        "other_bytes": [
            label for label in bytes_here if bytes_here[label] != bytes_there.get(label)
        ],
        "said": [ran.err[-2000:] for ran in (local, remote) if ran.code],
    }


def main(folder: str, *tasks: str) -> int:
    """Print the comparison; 0 if verdicts and keys are equal, but for keys of scores."""
    found = compare(Path(folder).absolute(), tasks or TASKS)
    print(json.dumps(found, indent=1))
    others = [label for label in found["other_keys"] if not label.endswith(_SCORE)]
    return 0 if found["verdicts_equal"] and found["gates"] and not others else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
