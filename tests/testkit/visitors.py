"""An agent that works on any task: it looks around, has its kernel checked, and hands it in."""

from __future__ import annotations

import json
from typing import Any

from tests.testkit.cli import CliWorkspace

AGENT = """\
import json, pathlib, subprocess, sys
import kabuild_check

kernel = pathlib.Path(sys.argv[1])
here = sorted(str(path) for path in pathlib.Path().rglob("*") if path.is_file())
answer = kabuild_check.check(kernel.read_text(), sys.argv[2].split(","))
broken = kabuild_check.check("def broken(:", ("compile",))
asked = subprocess.run(["kabuild-check", "compile"], capture_output=True, text=True)
print(json.dumps([here, answer.verdicts, broken.verdicts, [asked.returncode, asked.stdout]]))
"""
DECLARED = """\
[[agent]]
name    = "visitor"
command = ["{python}", "{files}/agent.py", "{kernel}", "GATES"]
files   = ["agent.py"]
seconds = 100
"""
JUDGES = ("parameters.json", "adapter", "library", "original/", "truth", "salt")
"""Parts of names of files that only a judge has."""


def visited(workspace: CliWorkspace, task: str, gates: str = "compile") -> list[str]:
    """The files that the agent saw of a task, once its own checks and the judge's passed."""
    workspace.write("agents/BUILD.toml", DECLARED.replace("GATES", gates))
    workspace.write("agents/agent.py", AGENT)
    ran = workspace.run("test", task, "--agent=//agents:visitor", f"--gates={gates}", "--json")
    said = list(workspace.root.glob(f"out/**/{task.rpartition('/')[2]}.agent/transcript.jsonl"))
    text = said[0].read_text() if said else ""
    told = [line for line in map(_answer, text.splitlines()) if line]
    assert told, (ran.out, ran.err, text)
    here, answer, broken, asked = told[-1]
    assert {one["verdict"] for one in answer} == {"PASS"}, answer
    assert broken[0]["verdict"] == "FAIL", broken
    assert asked[0] == 0, asked
    judged = [ran.gate(gate)["verdict"] for gate in gates.split(",")]
    assert (ran.code, {*judged}) == (0, {"PASS"}), ran.out
    assert not [name for name in here if any(part in name for part in JUDGES)], here
    return list(here)


def _answer(line: str) -> Any:
    """What the agent printed, where a line of the transcript holds it."""
    try:
        return json.loads(json.loads(line)["text"])
    except (KeyError, TypeError, ValueError):
        return None
