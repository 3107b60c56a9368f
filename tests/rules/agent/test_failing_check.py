"""A check that fails by itself: the agent is told so, and not that its connection broke."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.testkit.cli import REPOSITORY

# As in a session's sandbox, where ``sandbox`` is a package of its own.
PATHS = [str(REPOSITORY / part) for part in ("kabuild", "rules/agent/tools", "rules/harness/tools")]
ASK = """
import sys
sys.path += sys.argv[1:]
import json, os, socket, tempfile, threading
from pathlib import Path
from types import SimpleNamespace
from checks import listen, serve

def compile(source):
    raise OSError(28, "No space left on device")

home = Path(tempfile.mkdtemp())
listening = listen(home / "check")
bench = SimpleNamespace(compile=compile, compile_all=lambda sources: [])
serving = (listening, bench, home / "record")
threading.Thread(target=serve, args=serving, daemon=True).start()
odd = b'{"sources": [], "source": 5, "gates": 6}\\n'
for text in (odd, b'{"source": "int main", "gates": ["compile"]}\\n', b'{"source"'):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(home / "check"))
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        print(connection.makefile().read(), end="")
print((home / "record").read_text(), end="")
os._exit(0)
"""


def test_a_machine_s_failure_is_told_and_not_blamed_on_the_kernel() -> None:
    done = subprocess.run(
        [sys.executable, "-u", "-c", ASK, *PATHS],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    odd, failed, malformed, *record = map(json.loads, done.stdout.splitlines())
    assert odd == {"verdicts": []}, "and the others are still served"
    assert failed == {
        "error": "the check itself failed: No space left on device",
        "machine": True,
    }
    assert not malformed["machine"]
    assert [entry["error"] for entry in record] == ["", failed["error"], malformed["error"]]
