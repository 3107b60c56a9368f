"""What a definition says is what happens: prompts, budgets, secrets, adapters, checks."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.testkit.cli import REPOSITORY, CliWorkspace

from .conftest import KERNEL

BUILD = ("build", "//double:double.agent", "--agent=//agents:mine")
BUILT = "out/double/double.agent/solution/"
"""Where the user finds what the agent wrote; the agent's own check names it by its desk."""
AGENT = """\
import hashlib, json, os, pathlib, sys, time

def tell(text):
    print(hashlib.sha256(text.encode()).hexdigest(), len(os.environ.get("MY_API_KEY", "")))

if sys.argv[1] == "argument":
    tell(sys.argv[2])
elif sys.argv[1] == "stdin":
    tell(sys.stdin.read())
elif sys.argv[1] == "file":
    tell(pathlib.Path(sys.argv[2]).read_text())
elif sys.argv[1] == "spend":
    kernel = pathlib.Path("double.hip")
    kernel.write_text("// spent\\n" + kernel.read_text())
    for turn in range(1, 1000):
        print(json.dumps({"usage": {"turns": turn, "dollars": turn / 4}}), flush=True)
        time.sleep(0.1)
elif sys.argv[1] == "print":
    print("\\n".join(sys.argv[2:]))
elif sys.argv[1] == "analyze":
    import subprocess
    kernel = pathlib.Path("double.hip")
    strided = kernel.read_text().replace("x[i];", "x[i / 32 + i % 32 * (n / 32)];")
    for text in (strided, "int main"):
        kernel.write_text(text)
        for flags in ((), ("--json",)):
            told = subprocess.run(
                ["kabuild-check", "--analyze", *flags], capture_output=True, text=True
            )
            print(json.dumps([told.returncode, told.stdout, told.stderr]))
elif sys.argv[1] == "wrong":
    import kabuild_check
    kernel = pathlib.Path("double.hip")
    kernel.write_text(kernel.read_text().replace(*json.loads(sys.argv[2])))
    answer = kabuild_check.check(kernel.read_text(), ("compile", "correctness"))
    print(json.dumps(answer.verdicts))
"""
ADAPTER = """\
from adapter import Report, State, Usage

class _Meter:
    def feed(self, line):
        return Usage(output_tokens=1000) if b'"turns": 2' in line else None

meter = _Meter

def prepare(setup):
    (setup.home / "settings").write_text(setup.model)

def read(captured):
    if b"nonsense" in captured.stdout:
        return 1 // 0
    return Report(captured.state, transcript=({"role": "system", "text": "read by mine"},))
"""


def _declare(workspace: CliWorkspace, *arguments: str, **fields: Any) -> None:
    command = ["{python}", "{files}/agent.py", *arguments]
    files = ["agent.py", "own_adapter.py"]
    lines = {"name": "mine", "command": command, "files": files, "seconds": 100, **fields}
    text = "".join(f"{name} = {json.dumps(value)}\n" for name, value in lines.items())
    workspace.write("agents/BUILD.toml", f"[[agent]]\n{text}")
    workspace.write("agents/agent.py", AGENT)
    workspace.write("agents/own_adapter.py", ADAPTER)


def _made(workspace: CliWorkspace) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What is told of the session, and its transcript."""
    made = workspace.root / "out/double/double.agent"
    lines = (made / "transcript.jsonl").read_text().splitlines()
    return json.loads((made / "agent.json").read_text()), [json.loads(line) for line in lines]


def test_the_agent_of_the_readme_runs(quick: CliWorkspace) -> None:
    readme = (REPOSITORY / "rules/agent/README.md").read_text()
    for name, language in (("BUILD.toml", "toml"), ("mine.py", "python")):
        quick.write(f"agents/{name}", readme.split(f"```{language}\n")[1].split("```")[0])

    ran = quick.run(*BUILD)

    assert ran.code == 0, ran.err
    _, transcript = _made(quick)
    said = [entry["text"] for entry in transcript if entry["role"] == "assistant"]
    assert [line.partition(":")[0] for line in said] == ["compile", "correctness"]
    assert all(": PASS: " in line for line in said)


def test_a_command_line_that_is_not_installed_is_said_to_be(quick: CliWorkspace) -> None:
    _declare(quick, cli=":gone")
    gone = '[[toolchain]]\nname = "gone"\nrole = "agent-cli"\nlocal = "/nowhere/cli"\n'
    declared = quick.root / "agents/BUILD.toml"
    declared.write_text(f"{declared.read_text()}{gone}")

    ran = quick.run(*BUILD)

    assert ran.code == 36
    assert "//agents:gone is not on this machine: /nowhere/cli does not exist" in ran.err


def test_the_prompt_arrives_in_each_way_and_a_secrets_value_is_in_no_key(
    quick: CliWorkspace,
) -> None:
    said = set()
    for by, argument in (("argument", "{prompt}"), ("stdin", "-"), ("file", "{prompt_file}")):
        _declare(quick, by, argument, prompt_by=by, secrets=["MY_API_KEY"])
        with_key = CliWorkspace(quick.root, quick.store, {"MY_API_KEY": "correct-horse"})
        ran = with_key.run(*BUILD)
        assert ran.code == 0, ran.err
        _, transcript = _made(quick)
        assert "y = 2 x." in transcript[0]["text"]
        said.add(transcript[1]["text"])

    assert len(said) == 1
    assert said.pop().endswith(f" {len('correct-horse')}")
    again = CliWorkspace(quick.root, quick.store, {"MY_API_KEY": "another-battery"}).run(*BUILD)
    assert (again.code, again.executed) == (0, set())


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"turns": 2}, "it used 3 turns, at most 2 are allowed"),
        (
            {"tokens": 500, "adapter": "own_adapter", "model": "m"},
            "it used 1000 tokens, at most 500 are allowed",
        ),
    ],
)
def test_a_budget_ends_a_run_whose_kernel_is_judged(
    quick: CliWorkspace, fields: dict[str, Any], why: str
) -> None:
    _declare(quick, "spend", **fields)

    ran = quick.run(*BUILD)

    assert ran.code == 0, ran.err
    facts, transcript = _made(quick)
    assert (facts["state"], facts["message"]) == ("budget", why)
    assert facts["solution"]["changed"]
    own = any(entry["text"] == "read by mine" for entry in transcript)
    assert own == ("adapter" in fields)


EVENTS: dict[str, list[dict[str, Any]]] = {
    "claude_code": [
        {"type": "assistant"},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "I look."}]}},
        {"type": "user", "message": {"content": [{"type": "tool_result"}, 3]}},
        {"type": "result", "is_error": False, "num_turns": 2, "usage": {"input_tokens": 5}},
    ],
    "codex": [
        {"type": "item.completed"},
        {"type": "item.completed", "item": {"type": "agent_message", "text": "I look."}},
        {"type": "item.completed", "item": {"type": "agent_message"}},
        {"type": "turn.completed", "usage": {"input_tokens": 5, "output_tokens": 0}},
    ],
    "cursor": [
        {"type": "assistant"},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "I look."}]}},
        {"type": "tool_call", "subtype": "completed"},
        {"type": "result", "is_error": False, "usage": {"inputTokens": 5}},
    ],
}


@pytest.mark.parametrize("name", EVENTS)
def test_an_odd_event_is_skipped_and_counted_and_the_rest_is_kept(
    quick: CliWorkspace, name: str
) -> None:
    _declare(quick, "print", *map(json.dumps, EVENTS[name]), adapter=name)

    ran = quick.run(*BUILD)

    assert ran.code == 0, ran.err
    facts, transcript = _made(quick)
    assert (facts["state"], facts["message"], facts["skipped_events"]) == ("finished", "", 2)
    assert facts["usage"]["input_tokens"] == 5
    assert [entry["text"] for entry in transcript[1:]] == ["I look."]


def test_what_an_adapter_cannot_read_at_all_is_kept_as_it_was_printed(quick: CliWorkspace) -> None:
    _declare(quick, "print", "nonsense", adapter="own_adapter")

    ran = quick.run(*BUILD)

    assert ran.code == 0, ran.err
    facts, transcript = _made(quick)
    assert facts["state"] == "failed"
    assert facts["message"].startswith("its output cannot be read: ZeroDivisionError")
    assert [entry["text"] for entry in transcript[1:]] == ["nonsense"]


@pytest.mark.parametrize("change", [("y[i] =", "y[i] = nope +"), ("2.0f * x[i]", "2.5f * x[i]")])
def test_a_check_says_what_the_gates_say(quick: CliWorkspace, change: tuple[str, str]) -> None:
    assert change[0] in KERNEL
    _declare(quick, "wrong", json.dumps(change))
    gates = ("compile", "correctness")

    ran = quick.run("test", "//double", *BUILD[2:], f"--gates={','.join(gates)}", "--json")

    assert ran.code == 3, ran.err
    _, transcript = _made(quick)
    (said,) = [json.loads(e["text"]) for e in transcript if e["role"] == "assistant"]
    for verdict in said:
        judged = ran.gate(verdict["gate"])
        judged["summary"] = judged["summary"].replace(BUILT, "")
        for field in ("verdict", "reason", "summary"):
            assert _without_numbers(verdict.get(field, "")) == _without_numbers(judged[field])


def _without_numbers(text: str) -> str:
    """Values are drawn anew for each."""
    return re.sub(r"-?\d[\d.e+-]*", "N", text)


def test_accesses_are_counted_for_an_agent(quick: CliWorkspace) -> None:
    """With the names of analysis.json, and in words; a kernel that does not compile is not."""
    _declare(quick, "analyze")

    ran = quick.run(*BUILD)

    assert ran.code == 0, ran.err
    _, transcript = _made(quick)
    said = [json.loads(entry["text"]) for entry in transcript if entry["role"] == "assistant"]
    (code, told, _), (_, plain, _), (failed, wrong, _), _ = said
    (verdict,) = json.loads(plain)
    (finding,) = verdict["analysis"]["findings"]["warp32"]
    assert (code, verdict["gate"], verdict["verdict"]) == (0, "analyze", "PASS")
    assert (finding["kind"], finding["line"], finding["memory"]) == ("UNCOALESCED", 5, "x")
    assert "[f32 n=1048] moves at least 4,096 bytes from memory and 4,192 to it; requests" in told
    assert "1. double.hip:5: loads of 'x' move" in told
    assert failed == 3
    assert wrong.startswith("compile: FAIL (COMPILE_ERROR)")
    calls = (quick.root / "out/double/double.agent/calls.jsonl").read_text().splitlines()
    assert [json.loads(line)["gates"] for line in calls] == [["analyze"]] * 4
