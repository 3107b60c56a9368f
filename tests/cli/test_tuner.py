"""The tuner at work through the real program, and kernels that are compiled together."""

from __future__ import annotations

import json

from tests.testkit.cli import CliWorkspace

from .conftest import KERNEL, declare

AGENT = """\
[[agent]]
name    = "together"
command = ["{python}", "{files}/together.py", "{kernel}"]
files   = ["together.py"]
seconds = 100
"""
TOGETHER = """\
import pathlib, sys
import kabuild_check

good = pathlib.Path(sys.argv[1]).read_text()
other = good.replace("2.0f", "3.0f")
print(kabuild_check.compile_all(()))
for answer in kabuild_check.compile_all((good, "int main", other, good)):
    print(answer.passed, answer.interval, answer.summary.partition(chr(10))[0])
print(kabuild_check.check(other).summary.split(":")[:2])
for bad in ([good] * 65, [good, chr(0)]):
    try:
        kabuild_check.compile_all(bad)
    except kabuild_check.CheckError as error:
        print(error.machine, error)
"""
SLOW = "for (int k = 0; k < kTimes; ++k) ((volatile float*)y)[i] ="


def test_kernels_are_compiled_together(quick: CliWorkspace) -> None:
    quick.write("agents/BUILD.toml", AGENT)
    quick.write("agents/together.py", TOGETHER)

    ran = quick.run("build", "//double:double.agent", "--agent=//agents:together")

    assert ran.code == 0, ran.err
    out = quick.root / "out/double/double.agent"
    entries = [*map(json.loads, (out / "transcript.jsonl").read_text().splitlines())]
    said = [entry["text"] for entry in entries if entry["role"] == "assistant"]
    assert said[0] == "()"
    assert [line.split()[0] for line in said[1:5]] == ["True", "False", "True", "True"]
    assert said[5].startswith("['compile', ' PASS")
    assert said[6] == "False this cannot be checked: at most 64 kernels can be asked about at once"
    assert said[7] == "False the kernel is refused: it is binary: byte 0 is zero"
    nothing, four, one, *refused = map(json.loads, (out / "calls.jsonl").read_text().splitlines())
    assert (nothing["kernels"], nothing["verdicts"]) == ([], [])
    verdicts = [verdict["verdict"] for verdict in four["verdicts"]]
    assert (four["gates"], verdicts) == (["compile"], ["PASS", "FAIL", "PASS", "PASS"])
    assert four["kernels"][0] == four["kernels"][3] != four["kernels"][2] == one["kernel"]
    assert all(entry["error"] for entry in refused)


def test_the_tuner_hands_in_what_is_faster_and_else_the_kernel(quick: CliWorkspace) -> None:
    for name, own in (("slow", 1000), ("quick", 1)):
        declare(quick, name)
        line = f"// kabuild:tune kTimes = 1, 1000\nconstexpr int kTimes = {own};\n\n"
        text = KERNEL.replace("y[i] =", SLOW).replace("__global__", line + "__global__")
        quick.write(f"{name}/double.hip", text)
        build = quick.run("build", f"//{name}:{name}.agent", "--agent=tuner")
        assert build.code == 0, build.err
        out = quick.root / f"out/{name}/{name}.agent"
        assert json.loads((out / "agent.json").read_text())["state"] == "finished"
        found = (out / "solution/double.hip").read_text()
        said = (out / "transcript.jsonl").read_text()
        assert found == text.replace(f"kTimes = {own};", "kTimes = 1;"), said
