"""Kernels that a tool watches, in real sandboxes; a script stands for the tool, which needs a GPU.

What compute-sanitizer itself finds is measured on a GPU by ``tests/device/sanitizer.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import torch
from base.program import CandidateFault, Config, MachineFault, Program
from base.spec import Spec, SpecError
from run_support import DOUBLING
from runners.launcher import Launcher
from sanitize.examiner import SanitizePolicy
from sanitize.findings import Finding
from sanitize.places import Places
from sanitize.watched import TOOLS, Watched
from terms.reasons import Reason

CONFIG = Config("f32 n=1000", {"n": 1000}, "f32", {})
PLACES = Places(
    {"schema": 1, "files": {"kernel.hip": {"name": "mine.hip", "lines": [[[1, 3, 1]]]}}, "code": []}
)
# `tool` is the one that is asked for, `report` where its report belongs; the candidate's process
# would be started with what is left of the arguments.
SCRIPT = """\
#!/bin/sh
while [ "$1" != "/runner/hip-alone" ]; do
  case "$1" in --tool=*) tool=${1#--tool=};; --save=*) report=${1#--save=};; esac
  shift
done
echo "========= COMPUTE-SANITIZER"
READY
EMPTY='<?xml version="1.0"?><ComputeSanitizerOutput/>'
BODY
"""
READY = "echo kabuild-alone ready; echo kabuild-alone memory x 10000 4000"
CLEAN = 'echo kabuild-alone done; echo "$EMPTY" > "$report"'
RECORD = (
    "<ComputeSanitizerOutput><record><what><space>__global__</space><size>4</size>"
    "<direction>read</direction><address>0x10fa0</address></what><where><func>twice</func>"
    "<path>/b/kernel.hip</path><line>1</line></where></record></ComputeSanitizerOutput>"
)


@dataclass(frozen=True)
class Watching:
    """A candidate and the sandbox that it would be watched in."""

    launcher: Launcher
    folder: Path

    def examine(
        self, body: str, *, ready: str = READY, seconds: float = 20.0
    ) -> tuple[list[Finding], CandidateFault | None]:
        """What comes of a tool that does as ``body`` says."""
        tool = self.folder / "tool" / "bin" / "compute-sanitizer"
        tool.parent.mkdir(parents=True)
        tool.write_text(SCRIPT.replace("READY", ready).replace("BODY", body))
        tool.chmod(0o755)
        (self.folder / "tool" / "lib").mkdir()
        (self.folder / "tool" / "lib" / "libsanitizer-collection.so").touch()
        found, fault = self.watched(seconds).examine(CONFIG, {"x": torch.ones(1000)})
        return list(found), fault

    def watched(self, seconds: float = 20.0) -> Watched:
        for name in ("kernel.so", "hip-alone"):
            (self.folder / name).touch()
        candidate = Program(
            "hip", f"{self.folder}/kernel.so", "doubling", (), f"{self.folder}/hip-alone", "cuda"
        )
        spec = cast("Spec", SimpleNamespace(candidate=candidate, signature=DOUBLING))
        policy = SanitizePolicy(watch_seconds=seconds)
        return Watched(spec, policy, self.launcher, PLACES, self.folder / "tool")


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[Watching]:
    with Launcher.start() as launcher:
        yield Watching(launcher, tmp_path)


def test_every_tool_watches_a_call_of_its_own(watching: Watching) -> None:
    """All of them report; what none of them minds is no finding."""
    body = f'{CLEAN}\ncat > "$report" <<END\n{RECORD.replace(">4<", ">$tool<")}\nEND'

    findings, fault = watching.examine(body)

    assert fault is None
    assert {(found.kind, found.text.split()[2]) for found in findings} == {
        (kind, tool) for tool, kind in TOOLS.items()
    }
    assert str(findings[0].place) == "mine.hip:3:1"
    assert "0 bytes past the end of 'x' (4000 bytes)" in findings[0].text


def test_silence_of_all_tools_is_good(watching: Watching) -> None:
    assert watching.examine(CLEAN) == ([], None)


def test_the_call_is_laid_out_for_the_process(watching: Watching) -> None:
    """The process gets the control block, the inputs, and the candidate, and they are there."""
    look = 'test -s "$2" && test "$(wc -c < "$3")" = 4000 && test "$4" = /candidate/kernel.so'

    assert watching.examine(f"{look} && {{ {CLEAN}; }}") == ([], None)


@pytest.mark.parametrize(
    ("body", "reason", "said"),
    [
        ('echo kabuild-alone fault launch 801; echo "$EMPTY" > "$report"', "LAUNCH_ERROR", "801"),
        ("echo kabuild-alone fault missing_entry 0", "MISSING_ENTRY", "lacks its entry"),
        ("echo oh dear; kill -9 $$", "CRASH", "oh dear"),
        (f"{CLEAN}; echo '<!DOCTYPE a>' > \"$report\"", "PROTOCOL_VIOLATION", "spoiled the report"),
        ('echo kabuild-alone done; rm -f "$report"', "PROTOCOL_VIOLATION", "spoiled the report"),
    ],
)
def test_a_call_that_fails_is_the_candidates(
    watching: Watching, body: str, reason: str, said: str
) -> None:
    findings, fault = watching.examine(body)

    assert findings == []
    assert fault is not None
    assert fault.reason is Reason(reason)
    assert said in fault.detail


def test_a_call_that_never_ends_is_ended(watching: Watching) -> None:
    _, fault = watching.examine("sleep 100", seconds=1.0)

    assert fault is not None
    assert (fault.reason, fault.rejected) == (Reason.TIMEOUT, False)


def test_what_a_candidate_leaves_running_holds_nobody_up(watching: Watching) -> None:
    """It keeps the tool's output open; the report counts."""
    assert watching.examine(f"sleep 100 & {CLEAN}") == ([], None)


def test_a_tool_that_does_not_start_blames_nobody(watching: Watching) -> None:
    refusal = 'echo "========= Error: Device not supported"; exit 1'

    with pytest.raises(MachineFault, match=r"did not start the candidate: .*\n.*not supported"):
        watching.examine("", ready=refusal)


def test_a_toolchain_without_the_tool_is_named(watching: Watching) -> None:
    with pytest.raises(SpecError, match="no compute-sanitizer in the toolchain"):
        watching.watched()
