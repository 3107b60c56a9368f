"""A secret of several lines, such as a private key, is in nothing that is kept."""

from __future__ import annotations

import base64
import hashlib
import json
import textwrap
from pathlib import Path

from tests.testkit.bundles import read_members
from tests.testkit.cli import CliWorkspace

LINES = (
    "-----BEGIN OPENSSH PRIVATE KEY-----",
    *(base64.b64encode(hashlib.sha384(bytes([n])).digest()).decode() for n in range(5)),
    "-----END OPENSSH PRIVATE KEY-----",
)
KEY = "\n".join(LINES)
DECLARED = """\
[[agent]]
name    = "teller"
command = ["{python}", "{files}/teller.py", "{kernel}"]
files   = ["teller.py"]
secrets = ["MY_KEY"]
seconds = 100
"""
TELLER = """\
import base64, json, os, pathlib, subprocess, sys, urllib.parse

key = os.environ["MY_KEY"]
kernel = pathlib.Path(sys.argv[1])
comments = "".join(f"// {line}\\n" for line in key.splitlines())
kernel.write_text(comments + kernel.read_text())
print(key)
print(json.dumps({"usage": {"turns": 1}, "key": key}))
print(json.dumps({"text": json.dumps({"key": key})}))
print(urllib.parse.quote(key))
print(base64.b64encode(key.encode()).decode())
print(base64.encodebytes(key.encode()).decode())
print(repr(key), key.splitlines(), file=sys.stderr)
subprocess.run(["kabuild-check", "compile"], check=False)
import kabuild_check
try:
    kabuild_check.check(kernel.read_text(), only=key)
except kabuild_check.CheckError as error:
    print(error)
sys.exit(key)
"""


def test_no_line_of_a_private_key_is_kept_or_published(quick: CliWorkspace) -> None:
    workspace = CliWorkspace(quick.root, quick.store, {"MY_KEY": KEY})
    workspace.write("agents/BUILD.toml", DECLARED)
    workspace.write("agents/teller.py", TELLER)
    flags = ("//double", "--agent=//agents:teller", "--gates=compile")

    ran = workspace.run("test", *flags, "--events=events.jsonl", "--summary=summary.json", "--json")
    published = workspace.run("publish", *flags, "--transcripts", "-o", "all.kab")

    assert (ran.code, published.code) == (0, 0), ran.err + published.err
    made = workspace.root / "out/double/double.agent"
    transcript = [*map(json.loads, (made / "transcript.jsonl").read_text().splitlines())]
    said = [entry["text"] for entry in transcript if entry["role"] == "assistant"]
    assert said.count("[MY_KEY]") >= len(LINES)
    assert (made / "solution/double.hip").read_text().startswith("// [MY_KEY]\n" * len(LINES))
    kept = {str(path): path.read_bytes() for path in _files(workspace)}
    kept |= read_members(workspace.root / "all.kab")
    printed = (ran.out, ran.err, published.out, published.err)
    kept |= {f"what was printed, {n}": text.encode() for n, text in enumerate(printed)}
    assert any(b"transcript.jsonl" in data for data in kept.values())
    for form in _forms():
        assert not [path for path, data in kept.items() if form in data], form


def _files(workspace: CliWorkspace) -> list[Path]:
    roots = (workspace.root, workspace.store)
    return [path for root in roots for path in root.rglob("*") if path.is_file()]


def _forms() -> list[bytes]:
    """Every line of the key, and of it in base64."""
    encoded = base64.b64encode(KEY.encode()).decode()
    return [text.encode() for text in (*LINES, *textwrap.wrap(encoded, 76)) if len(text) >= 8]
