"""Each call of a batch is guarded against host code, also beside one that is left out."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from run_support import DOUBLING, config, draws, library, native_runner

from base.program import Program, RunnerPolicy  # isort: skip
from runners.launcher import Launcher  # isort: skip

HIDES, BOUNDS = 1, 2
RUNTIME = """
#include <stdint.h>
#include <stddef.h>

struct piece { char* base; size_t bytes; int protection; };
struct loan {
  const struct piece* all;
  const struct piece* pieces;
  uint32_t all_count, piece_count;
  _Bool hide;
  uint64_t most_copied;
  _Bool (*protect)(char*, size_t, int);
  void (*refuse)(uint64_t);
};

int guards;

/* Notes how the call is guarded, and shows its memory as to a kernel. */
_Bool hipcpu_begin_call(const struct loan* loan) {
  guards = 0;
  if (!loan) return 1;
  guards = loan->hide + (loan->most_copied < UINT64_MAX / 2 ? 2 : 0);
  for (uint32_t i = 0; loan->hide && i < loan->piece_count; ++i) {
    loan->protect(loan->pieces[i].base, loan->pieces[i].bytes, loan->pieces[i].protection);
  }
  return 1;
}

int hipcpu_explain_fault(const void* address) { return 0; }
void hipcpu_enable_launches(int enabled) {}
"""
CANDIDATE = """
#include <dlfcn.h>
#include <stdint.h>

int tells(const float* x, float* y, int64_t n, void* stream) {
  const int* guards = dlsym(RTLD_DEFAULT, "guards");
  for (int64_t i = 0; i < n; ++i) y[i] = *guards;
  return 0;
}
"""


@pytest.mark.parametrize("left_out", [None, 0, 1, 2])
@pytest.mark.parametrize("hides", [False, True])
def test_only_a_call_that_is_left_out_may_copy_any_amount(hides, left_out):
    program = Program("hip", library(CANDIDATE), "tells", (library(RUNTIME),), native_runner())
    policy = RunnerPolicy(own_kernels=True, hides=hides)
    usual = BOUNDS + (HIDES if hides else 0)

    with Launcher.start() as launcher, launcher.open(program, DOUBLING, policy) as runner:
        runner.load(config(), 3)
        outputs = runner.batch(draws(3), left_out).outputs

    for index, made in enumerate(outputs):
        expected = HIDES if index == left_out else usual
        assert torch.equal(made["y"], torch.full((1000,), float(expected)))


def test_programs_that_may_launch_anything_are_not_guarded():
    program = Program("hip", library(CANDIDATE), "tells", (library(RUNTIME),), native_runner())
    plain = RunnerPolicy(own_kernels=True)

    for policy in (RunnerPolicy(hides=True), replace(plain, launches=False)):
        with Launcher.start() as launcher, launcher.open(program, DOUBLING, policy) as runner:
            runner.load(config(), 1)
            (made,) = runner.batch(draws(1)).outputs
        assert made["y"].eq(0).all()
