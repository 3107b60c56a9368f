"""Cheats of a task whose output is drawn, and samplers that are right, by the real program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from tests.testkit.cli import CliWorkspace
from tests.testkit.kept import kept_alone

from .candidates import HERE
from .recorded import TIMED as TIMED_GATES
from .recorded import Entry, Record

Judged = dict[str, dict[str, Entry]]

pytestmark = [pytest.mark.slow, pytest.mark.untimed]  # what is drawn decides, under a clock, too

BUILD = """\
[[hip2hip]]
name      = "NAME"
kernel    = "sample.hip"
reference = "reference.py"
brief     = "Draws tokens for each row from the softmax of its logits, each draw by itself."
entry     = "sample"
inputs    = { logits = "T[rows, cats]", seed = "i64[1]" }
outputs   = { token = "i32[rows, draws]" }
dims      = { rows = "1..256", cats = "2..64", draws = "1..1024" }
dtypes    = ["f32"]
configs   = [ { rows = 16, cats = 12, draws = 128 } ]
compare   = { token = "sampled(seed)" }
correctness = { edges = 2, repeats = 2, call_seconds = 5 }
perf = { processes = 3, max_processes = 3, samples = 2, budget_seconds = 40.0, max_slots = 40 }
"""  # what the budget allows is far more than 40 calls a batch on any machine, however busy
REFERENCE = """\
import torch


def inputs(config, generator):
    logits = torch.randn(config["rows"], config["cats"], generator=generator)
    seed = torch.randint(2**62, (1,), generator=generator)
    return {"logits": logits.to(config["dtype"]), "seed": seed}


def reference(logits, seed, rows, draws, **_):
    generator = torch.Generator().manual_seed(int(seed))
    weights = torch.softmax(logits, dim=-1)
    return {"token": torch.multinomial(weights, draws, replacement=True, generator=generator)}


def cdf(outputs, logits, cats, **_):
    token = outputs["token"]
    total = torch.softmax(logits, dim=-1).cumsum(-1)
    known = total.gather(-1, token.clamp(0, cats - 1))
    return {"token": torch.where((token < 0) | (token >= cats), float("nan"), known)}
"""
KERNEL = """\
HEADER
__device__ __forceinline__ float uniform(int64_t seed, int64_t row, int64_t draw) { UNIFORM }

__global__ void draw_tokens(const float* logits, const int64_t* seed, int32_t* token, int64_t rows,
                            int cats, int64_t draws, int calls) {
  const int64_t row = blockIdx.x;
  float largest = -INFINITY, total = 0.0f;
  for (int c = 0; c < cats; ++c) largest = fmaxf(largest, logits[row * cats + c]);
  for (int c = 0; c < cats; ++c) total += expf(logits[row * cats + c] - largest);
  for (int64_t d = threadIdx.x; d < draws; d += blockDim.x) {
    const int64_t at = row * draws + d;
    float left = uniform(SEED, row, d) * total;
    int c = 0;
    for (; c < cats - 1; ++c) {
      left -= expf(logits[row * cats + c] - largest);
      if (left < 0.0f) break;
    }
    token[at] = CHOSEN;
  }
}

extern "C" hipError_t sample_f32(const float* logits, const int64_t* seed, int32_t* token,
                                 int64_t rows, int64_t cats, int64_t draws, hipStream_t stream) {
  static int calls = 0;
  draw_tokens<<<rows, 64, 0, stream>>>(logits, seed, token, rows, cats, draws, ++calls);
  return hipGetLastError();
}
"""
MIXED = "return fraction(mixed(mixed(mixed(seed) + row) + draw));"


@dataclass(frozen=True)
class Sampler:
    """A candidate: the kernel with parts replaced, the gate that decides, what is said of it."""

    name: str
    gate: str = ""
    reason: str = ""
    said: str = ""
    uniform: str = MIXED
    chosen: str = "c"
    seed: str = "*seed"
    file: str = ""

    @property
    def source(self) -> str:
        if self.file:
            return HEADER + (HERE / "hip" / "samplers" / self.file).read_text()
        return (
            KERNEL.replace("HEADER", HEADER)
            .replace("UNIFORM", self.uniform)
            .replace("CHOSEN", self.chosen)
            .replace("SEED", self.seed)
        )


HEADER = (HERE / "hip" / "sampler.h").read_text()
WRONG = ("correctness", "WRONG_RESULT")
CHEATS = (
    Sampler("is_biased", *WRONG, "do not follow", f"{MIXED[:-1]} * 0.85f;"),
    Sampler("is_constant", *WRONG, "do not follow", "return 0.5f;"),
    Sampler("takes_the_likeliest", *WRONG, "do not follow", "return 0.0f;"),
    Sampler("has_a_table", *WRONG, "earlier call", seed="7"),
    Sampler("has_four_tables", *WRONG, "earlier call", seed="(*seed & 3)"),
    Sampler("draws_one_row", *WRONG, "128 elements", MIXED.replace("+ row", "")),
    Sampler(
        "draws_every_other", *WRONG, "1 elements apart", MIXED.replace("+ draw)", "+ draw / 2)")
    ),
    Sampler(
        "spreads_evenly", *WRONG, "depend on each other",
        "return fmodf(fraction(mixed(seed + row)) + draw * 0.61803399f, 1.0f);",
    ),
    Sampler(
        "repeats_a_thousand_numbers", *WRONG, "1000 elements on",
        MIXED.replace("+ row) + draw)", "+ (row * 128 + draw) % 1000))"),
    ),
    Sampler(
        "turns_a_table", *WRONG, "earlier call",
        "return fraction(mixed((row * 128 + draw + mixed(seed) % 1031) % 2048 + 7));",
    ),
    Sampler(
        "draws_one_index_beyond", *WRONG, "1 of 2048 elements have impossible values",
        chosen="(row * draws + d == 2047 ? cats : c)",
    ),
    Sampler(
        "fixes_one_token", *WRONG, "of those of element 461, ",
        chosen="(row == 3 && d == 77 ? 0 : c)",
    ),
    Sampler("draws_what_is_not_there", *WRONG, "have impossible values", chosen="c + 1"),
    Sampler("never_draws_the_last", *WRONG, "do not follow", chosen="c == cats - 1 ? 0 : c"),
    Sampler(
        "asks_the_clock", "correctness", "NONDETERMINISTIC", "differs between equal calls",
        seed="(*seed + clock64())",
    ),
    Sampler(
        "counts_calls", "correctness", "NONDETERMINISTIC", "differs between equal calls",
        seed="(*seed + calls)",
    ),
    Sampler(
        "replays_once_it_is_timed", "perf", "WRONG_RESULT", "earlier call",
        seed="(calls > 40 && rows * draws == 2048 && calls % 3 == 0 ? 7 : *seed)",
    ),
)  # fmt: skip
TWINS = (
    Sampler("shifts_and_adds", uniform="""
      uint64_t state = mixed(seed) ^ mixed(row * 1024 + draw + 1);
      for (int i = 0; i < 4; ++i) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
      }
      return fraction(state * 0x2545f4914f6cdd1du);"""),
    Sampler("races_exponentials", file="races_exponentials.hip"),
)  # fmt: skip
PACKAGE = "samplers"
TIMED = ("replays_once_it_is_timed", *(twin.name for twin in TWINS))


@pytest.fixture(scope="module")
def judged(workspace: CliWorkspace) -> Judged:
    """What each candidate got, by gate; from the record where it is known (``recorded.py``)."""
    for sampler in (*CHEATS, *TWINS):
        folder = f"{PACKAGE}/{sampler.name}"
        workspace.write(f"{folder}/BUILD.toml", BUILD.replace("NAME", sampler.name))
        workspace.write(f"{folder}/reference.py", REFERENCE)
        workspace.write(f"{folder}/sample.hip", Sampler("baseline").source)
        workspace.write(f"{folder}/solutions/expert/sample.hip", sampler.source)
    others = [f"{PACKAGE}/{cheat.name}" for cheat in CHEATS if cheat.gate == "correctness"]
    record = Record(workspace.root, others)
    with kept_alone("cheats") as kept:
        untimed = CliWorkspace(workspace.root, kept / "store")
        found = _judge(untimed, record.due, "compile,correctness")
    record.accept(found)
    timed = Record(workspace.root, [f"{PACKAGE}/{name}" for name in TIMED], TIMED_GATES)
    found_timed = _judge(workspace, timed.due, "compile,correctness,perf")
    timed.accept(found_timed)
    found |= record.known() | found_timed | timed.known()
    return {name.rpartition("/")[2]: gates for name, gates in found.items()}


def _judge(workspace: CliWorkspace, packages: Sequence[str], gates: str) -> Judged:
    if not packages:
        return {}
    targets = [f"//{package}" for package in packages]
    ran = workspace.run("test", *targets, f"--gates={gates}", "--json")
    assert ran.json["totals"]["infra"] == 0, ran.out + ran.err
    found: Judged = {package: {} for package in packages}
    for entry in ran.json["targets"]:
        found[entry["task"].partition(":")[0].removeprefix("//")][entry["gate"]] = entry
    return found


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.name)
def test_what_is_not_drawn_is_refused(judged: Judged, cheat: Sampler) -> None:
    found = judged[cheat.name][cheat.gate]

    assert (found["verdict"], found["reason"]) == ("FAIL", cheat.reason), found
    assert cheat.said in found["summary"], found


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_any_right_sampler_is_accepted(judged: Judged, twin: Sampler) -> None:
    for gate in ("correctness", "perf"):
        assert judged[twin.name][gate]["verdict"] == "PASS", judged[twin.name][gate]


def test_such_a_task_is_admitted(workspace: CliWorkspace, judged: Judged) -> None:
    """Nothing that nobody drew passes its comparison."""
    assert judged
    task = f"//{PACKAGE}/{TWINS[0].name}"

    ran = workspace.run("validate", task, "--samples=8", "--json")

    (found,) = ran.json["targets"]
    assert found["verdict"] == "PASS", found
