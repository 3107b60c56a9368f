"""Each way in which a native candidate fails or cheats has its name; its twin passes."""

# mypy: allow-untyped-defs, allow-untyped-calls

import re
from pathlib import Path

import pytest
from run_support import (
    DOUBLING,
    QUICK,
    ROOT,
    config,
    draws,
    fault_of,
    is_doubled,
    native,
    run_doubling,
)

from base.tensors import poison_mask  # isort: skip
from runners import hip_errors  # isort: skip
from base.program import CandidateFault, RunnerPolicy  # isort: skip
from terms.reasons import Reason  # isort: skip

CHEATS = (Path(__file__).parent / "run_cheats.c").read_text()
SMALL = RunnerPolicy(memory_bytes=128 << 20, tmp_bytes=4 << 20)


@pytest.mark.parametrize(
    "twin",
    [
        "honest",
        "works_in_a_thread",
        "kills_everyone",
        "recovers_from_a_crash",
        "installs_exit_handlers",
    ],
)
def test_benign_twin_passes(launcher, twin):
    (inputs, batch), _ = run_doubling(launcher, native(CHEATS, twin), batches=2)

    assert is_doubled(inputs, batch)


def test_error_codes_have_the_names_of_the_headers():
    headers = ROOT / "toolchains/hip"
    cpu = (headers / "cpu/include/hipcpu/errors.h").read_text()
    cuda = (headers / "cuda/include/hipcuda/errors.h").read_text()
    numbered = {int(code): name for name, code in re.findall(r"row\(hipError(\w+), (\d+),", cpu)}
    named = re.findall(r"^  row\((\w+), ", cuda, re.MULTILINE)

    assert len(numbered) > 20
    assert numbered.items() <= hip_errors.NAMES.items()
    assert len(named) > 20
    assert {*named} <= {*hip_errors.NAMES.values()}
    assert hip_errors.described(77) == "hipError_t 77"


@pytest.mark.parametrize(
    ("cheat", "reason", "word"),
    [
        ("returns_an_error", Reason.LAUNCH_ERROR, "hipErrorInvalidDeviceFunction (98)"),
        ("returns_out_of_memory", Reason.OUT_OF_MEMORY, "hipErrorOutOfMemory (2)"),
        ("absent", Reason.MISSING_ENTRY, "'absent_f32' or 'absent'"),
        ("writes_its_input", Reason.INPUT_MUTATED, "a write of its input 'x', byte 28"),
        ("writes_its_input_in_threads", Reason.INPUT_MUTATED, "a write of its input 'x', byte 0"),
        ("unprotects_its_input", Reason.LAUNCH_ERROR, "hipError_t 77"),
        ("writes_one_past", Reason.OUT_OF_BOUNDS, "just past the end of 'y'"),
        ("writes_one_before", Reason.OUT_OF_BOUNDS, "4 bytes before the start of 'y'"),
        ("writes_far_past", Reason.OUT_OF_BOUNDS, "a write 6000 bytes behind 'y'"),
        ("reads_far_past", Reason.OUT_OF_BOUNDS, "a read 2000 bytes behind 'x'"),
        ("hangs", Reason.TIMEOUT, "no answer within"),
        ("stops_itself", Reason.TIMEOUT, "no answer within"),
        ("segfaults", Reason.CRASH, "SIGSEGV"),
        ("aborts", Reason.CRASH, "SIGABRT"),
        ("kills_itself", Reason.CRASH, "(SIGKILL) in a batch of 3 calls, although memory had not"),
        ("raises_sigfpe", Reason.CRASH, "SIGFPE"),
        ("traps", Reason.CRASH, "SIGILL"),
        ("overflows_the_stack", Reason.CRASH, "SIGSEGV"),
        ("exits_silently", Reason.CRASH, "exit code 0"),
        ("ends_at_once", Reason.CRASH, "exit code 0"),
        ("hides_its_crash", Reason.CRASH, "exit code 0"),
        ("forks", Reason.FORBIDDEN_SYSCALL, "system call"),
        ("runs_a_program", Reason.FORBIDDEN_SYSCALL, "system call"),
        ("spawns_a_shell", Reason.FORBIDDEN_SYSCALL, "system call"),
        ("opens_a_socket", Reason.FORBIDDEN_SYSCALL, "system call"),
        ("traces_its_parent", Reason.FORBIDDEN_SYSCALL, "system call"),
        ("forges_done", Reason.PROTOCOL_VIOLATION, "unrequested DONE"),
        ("claims_more_calls", Reason.PROTOCOL_VIOLATION, "4 calls"),
        ("claims_negative_time", Reason.PROTOCOL_VIOLATION, "-5 ns"),
        ("answers_out_of_order", Reason.PROTOCOL_VIOLATION, "answered with READY"),
        ("blames_the_machine", Reason.PROTOCOL_VIOLATION, "reported a fault of the machine"),
        ("invents_a_fault", Reason.PROTOCOL_VIOLATION, "unknown fault"),
        ("invents_a_kind", Reason.PROTOCOL_VIOLATION, "99"),
        ("doubles_its_answer", Reason.PROTOCOL_VIOLATION, ""),
        ("sends_too_little", Reason.PROTOCOL_VIOLATION, "5 bytes"),
        ("sends_too_much", Reason.PROTOCOL_VIOLATION, "too long"),
        ("sends_a_descriptor", Reason.PROTOCOL_VIOLATION, "with descriptors"),
        ("floods_the_socket", Reason.PROTOCOL_VIOLATION, "unrequested"),
    ],
)
def test_fault_has_its_reason(launcher, cheat, reason, word):
    fault = fault_of(launcher, native(CHEATS, cheat), QUICK if reason is Reason.TIMEOUT else None)

    assert fault.reason is reason, fault.detail
    assert word in fault.detail
    assert fault.rejected == reason.rejects


@pytest.mark.parametrize("cheat", ["sends_nothing", "hangs_up", "fakes_a_signal"])
def test_runner_that_neither_answers_nor_ends_violates_the_protocol(launcher, monkeypatch, cheat):
    monkeypatch.setattr("runners.conversation._LAST_WORDS_SECONDS", 0.1)
    assert fault_of(launcher, native(CHEATS, cheat)).reason is Reason.PROTOCOL_VIOLATION


@pytest.mark.parametrize("cheat", ["allocates_without_end", "shares_memory_without_end"])
def test_memory_has_a_limit(launcher, cheat):
    fault = fault_of(launcher, native(CHEATS, cheat), SMALL)

    assert fault.reason is Reason.OUT_OF_MEMORY, fault.detail


def test_all_requests_together_have_a_limit(launcher):
    fault = fault_of(launcher, native(CHEATS, "hangs"), RunnerPolicy(life_seconds=0.3))

    assert fault.reason is Reason.TIMEOUT
    assert "no answer within 0." in fault.detail


def test_processor_time_has_a_limit(launcher):
    fault = fault_of(launcher, native(CHEATS, "hangs"), RunnerPolicy(cpu_seconds=1))

    assert fault.reason is Reason.TIMEOUT
    assert "processor time" in fault.detail


def test_a_limit_that_a_candidate_gave_itself_is_told_as_one_of_time(launcher):
    fault = fault_of(launcher, native(CHEATS, "limits_its_own_time"))

    assert fault.reason is Reason.TIMEOUT
    assert "used up its own limit of 1 s of processor time in a batch" in fault.detail


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="has no autogroups")
@pytest.mark.parametrize(("entry", "excused"), [("honest", True), ("lets_others_go_first", False)])
def test_who_steps_back_is_not_kept_waiting(launcher, entry, excused):
    """A candidate may lower its own priority, and its waits are its own then."""
    with launcher.open(native(CHEATS, entry), DOUBLING) as runner:
        runner.load(config(), 1)
        runner.batch(draws(1))
        counted = runner._conversation._warden.count()

    assert (counted.main_waited_ns > 0) == excused


def test_unwritten_output_holds_poison(launcher):
    ((inputs, batch),) = run_doubling(launcher, native(CHEATS, "forgets_the_second_half"))

    for tensors, outputs in zip(inputs, batch.outputs, strict=True):
        mask = poison_mask(outputs["y"], "f32")
        assert (outputs["y"][:500] == 2 * tensors["x"][:500]).all()
        assert not mask[:500].any()
        assert mask[500:].all()


def test_work_after_the_return_is_not_seen(launcher):
    """The runner is frozen before its outputs are read."""
    with launcher.open(native(CHEATS, "works_after_it_returned"), DOUBLING) as runner:
        runner.load(config(), 3)
        batch = runner.batch(draws(3))

    assert all(poison_mask(outputs["y"], "f32").all() for outputs in batch.outputs)


def test_forged_answer_with_the_right_nonce_shows_unfinished_outputs_and_then_itself(launcher):
    runner = launcher.open(native(CHEATS, "forges_done_with_the_nonce"), DOUBLING)
    runner.load(config(), 3)

    batch = runner.batch(draws(3))
    assert all(poison_mask(outputs["y"], "f32").all() for outputs in batch.outputs)
    with pytest.raises(CandidateFault, match="unrequested") as caught:
        runner.close()  # finds the DONE that the runner's own code sent when it was thawed
    assert caught.value.reason is Reason.PROTOCOL_VIOLATION


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("exit(0)", Reason.CRASH),
        ("abort()", Reason.CRASH),
        ("fork()", Reason.FORBIDDEN_SYSCALL),
        ("say(16, 0, 0, 0)", Reason.PROTOCOL_VIOLATION),
        ("say(18, 0, 1, 0)", Reason.PROTOCOL_VIOLATION),
    ],
)
def test_constructor_that_attacks_before_main(launcher, statement, reason):
    fault = fault_of(launcher, native(CHEATS, "honest", f"-DCONSTRUCTOR={statement}"))

    assert fault.reason is reason, fault.detail


def test_library_that_does_not_load_says_why(launcher):
    fault = fault_of(
        launcher, native("int gone(void); int honest(void) { return gone(); }", "honest")
    )

    assert fault.reason is Reason.COMPILE_ERROR
    assert "gone" in fault.detail


def test_nothing_of_the_host_is_in_reach(launcher, tmp_path):
    secret = tmp_path / "spec.json"
    secret.write_text("the salt")
    program = native(CHEATS, "looks_around", f'-DSECRET="{secret}"')

    ((_, batch),) = run_doubling(launcher, program)

    allowed = {5: "its own /tmp"}
    reached = [i for i in range(7) if batch.outputs[0]["y"][i] != 0]
    assert reached == list(allowed)


def test_disk_has_a_limit(launcher):
    ((_, batch),) = run_doubling(launcher, native(CHEATS, "fills_the_disk"), SMALL)

    assert max(outputs["y"][0] for outputs in batch.outputs) == SMALL.tmp_bytes >> 20


def test_flood_of_output_is_cut_and_harmless(launcher):
    ((inputs, batch),) = run_doubling(launcher, native(CHEATS, "floods_stderr"))

    assert is_doubled(inputs, batch)


def test_output_is_shown_short_and_without_control_characters(launcher):
    policy = RunnerPolicy(stderr_bytes=16)
    fault = fault_of(launcher, native(CHEATS, "prints_terminal_codes"), policy)

    assert fault.detail.endswith("\n2Jplain? \ufffd text")
    assert "\033" not in fault.detail
    assert "\007" not in fault.detail


def test_dead_runner_is_only_closed(launcher):
    runner = launcher.open(native(CHEATS, "segfaults"), DOUBLING)
    runner.load(config(), 1)
    with pytest.raises(CandidateFault):
        runner.batch(draws(1))

    with pytest.raises(ValueError, match="closed"):
        runner.empty()
    runner.close()
