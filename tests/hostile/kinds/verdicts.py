"""What a gate may write: verdict.json, score.json, samples.json, and what it prints."""

from __future__ import annotations

import json
from typing import Any

from tests.hostile.draw import COMMANDS, ESCAPES, Draw
from tests.hostile.ground import Ground
from tests.hostile.kinds.kind import Kind
from tests.hostile.trees import changed

RULE = '''"""Gates that say what files say."""

from kabuild.rule import Gate, Role, Rule, attr

GATES = (
    Gate("compile", share="compiled", watched=True),
    Gate("correctness", share="correct", watched=True),
    Gate("perf", role=Role.TIMES, watched=True),
    Gate("unseen", share="unseen"),
    Gate("score", role=Role.SCORE),
)
MORE = {"perf": "samples.json", "score": "score.json"}
COPY = "cat out/../text 2>/dev/null; cat text >&2; cp verdict out/verdict.json; "


def implement(ctx):
    gates = []
    for gate in (gate.name for gate in GATES):
        more = MORE.get(gate)
        inputs = {"verdict": ctx.package_file(f"{gate}.json"), "text": ctx.package_file("text")}
        if more:
            inputs["more"] = ctx.package_file(more)
        made = ctx.gate(
            gate,
            argv=("/bin/sh", "-c", COPY + (f"cp more out/{more}" if more else ":")),
            inputs=inputs,
            outputs=(more,) if more else (),
            mnemonic=gate.capitalize(),
            requires=tuple(gates[-1:]),
        )
        gates.append(made)


RULE = Rule(kind="said", doc="Says.", implement=implement, attrs={}, gates=GATES)
'''
_CASE = {
    "config": "f32 n=8",
    "speedup": 2.0,
    "low": 1.9,
    "high": 2.1,
    "faster": True,
    "cold": False,
    "slots": 4,
    "baseline_slots": 4,
    "baseline_ns": 2e6,
    "candidate_ns": 1e6,
    "charged_ns": 0.0,
    "bytes": 64,
    "flops": 8,
    "warm": None,
}
_VERDICT: dict[str, Any] = {
    "schema": 1,
    "verdict": "PASS",
    "reason": "",
    "summary": "well",
    "detail": "a\nb",
    "cases": [],
}
_BATCH = {
    "attempts": 1,
    "reported_ns": 8_000_000,
    "slots": 4,
    "thread_ns": 8_000_000,
    "waited_ns": 1,
    "wall_ns": 8_100_000,
}
_SAMPLE = [[_BATCH] * 2] * 3
_READING = {"mhz": [2000.0], "throttled": 0, "stolen_ms": 0.0}
DOCUMENTS: dict[str, dict[str, Any]] = {
    "compile.json": {**_VERDICT, "gate": "compile"},
    "correctness.json": {
        **_VERDICT,
        "gate": "correctness",
        "cases": [{"stage": "smoke", "verdict": "PASS"}],
    },
    "perf.json": {
        **_VERDICT,
        "gate": "perf",
        "cases": [_CASE],
        "configs": ["f32 n=8"],
        "mean_speedup": 2.0,
        "stop": {"half_width": 0.05, "processes": 3, "reason": "budget", "wanted": 0.05},
    },
    "unseen.json": {
        **_VERDICT,
        "gate": "unseen",
        "cases": [{"class": "edge", "quadrant": "both_pass"}],
    },
    "score.json": {
        "schema": 1,
        "policy": "aka",
        "score": 320.0,
        "speedup": 2.0,
        "gates": {},
        "not_requested": [],
        "scores": {"aka": 320.0},
        "configs": [_CASE],
        "fast": {"1": 1.0},
        "conditional_correctness": 1.0,
    },
    "samples.json": {
        "baselines": {},
        "configs": {"f32 n=8": {"baseline": _SAMPLE, "candidate": _SAMPLE}},
        "machine": {"cores": 2, "load": [0.1, 0.1, 0.1], "readings": [_READING, _READING]},
    },
}
_TEXTS = (
    *COMMANDS,
    *ESCAPES,
    "plain\n",
    "\xff",
    "Traceback of nobody\n",
    "x" * 100_000,
    "\r\n\r\x1b[1A",
)
_ASKED: tuple[tuple[str, ...], ...] = (
    *(("test", "//said"), ("test", "//said", "--test_output=all"), ("test", "//said", "--json")),
    *(
        ("report", "//said", "--format=md"),
        ("report", "//said", "--format=json"),
        ("report", "//said", "--format=csv"),
    ),
    *(
        ("report", "//said", "--format=html", "-o", "x.html"),
        ("bench", "//said"),
        ("bench", "//said", "--json"),
    ),
    *(
        ("compare", "none", "expert", "//said"),
        ("publish", "//said", "-o", "said.kab"),
        ("build", "//said:said.perf"),
    ),
    *(
        ("test", "//said", "--events=events", "--summary=summary"),
        ("report", "//said", "--format=arena", "-o", "a"),
    ),
)


def play(draw: Draw, ground: Ground) -> None:
    """Gates that write what they should not."""
    folder = ground.root / "said"
    (ground.root / "rules/said").mkdir()
    folder.mkdir()
    (ground.root / "rules/said/rule.py").write_text(RULE)
    (folder / "BUILD.toml").write_text('[[said]]\nname = "said"\n')
    (folder / "text").write_bytes(draw.choice(_TEXTS).encode("latin-1", errors="replace"))
    hostile = draw.sample(list(DOCUMENTS), draw.choice((1, 1, 2)))
    for name, tree in DOCUMENTS.items():
        written = changed(draw, tree, lambda: _value(draw)) if name in hostile else tree
        data = json.dumps(written, default=str).encode()
        if name in hostile and draw.chance(0.15):
            data = draw.damaged(data)
        if draw.chance(0.02):
            data = draw.choice(
                (b"[" * 10_000, b'{"schema":1e999}', b"1" * 6000, b'{"a":' * 3000, b"\0")
            )
        (folder / name).write_bytes(data)
    _two_names(ground)
    for asked in draw.sample(_ASKED, 2):
        ground.run(ground.call(*asked))


def _two_names(ground: Ground) -> None:
    """The verdict of the gate ``score`` has another name than the score itself."""
    rule = ground.root / "rules/said/rule.py"
    rule.write_text(
        RULE.replace('f"{gate}.json"', '(f"{gate}.json" if gate != "score" else "gate.json")')
    )
    said = {
        **_VERDICT,
        "gate": "score",
        "score": 320.0,
        "speedup": 2.0,
        "score_reason": "",
        "policy": "aka",
    }
    (ground.root / "said/gate.json").write_text(json.dumps(said))


def _value(draw: Draw) -> Any:
    if draw.chance(0.4):
        return draw.value()
    return draw.choice(
        (
            *(
                None,
                -1.0,
                0.0,
                1e308,
                10**400,
                "FAIL",
                "REJECTED",
                "SKIPPED",
                "INFRA",
                "PASS",
                "pass",
                "NaN",
            ),
            *(
                "x\n::error::y",
                "\x1b[31m",
                "\u202e",
                {"config": "f32 n=8"},
                [[]],
                [[[]]],
                "f32 n=8",
                True,
            ),
            *(
                "x" * 20_000,
                "<script>alert(1)</script>",
                "|a|b|",
                "`",
                "//a:b",
                "=cmd|' /C calc'!A0",
            ),
        )
    )


KINDS = (Kind("verdicts", 1.5, play),)
