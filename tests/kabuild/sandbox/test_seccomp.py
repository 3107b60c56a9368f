"""The filters: right numbers, right verdicts on both machines, and the kernel agrees."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import struct
from pathlib import Path

import pytest
import ziglang  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from kabuild.sandbox import probe
from kabuild.sandbox.namespaces import Limits
from kabuild.sandbox.seccomp import Profile, assemble, numbers
from tests.kabuild.sandbox.boxes import call_contained, call_in_fork

MACHINES = ("x86_64", "aarch64")
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, ENOSYS = 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
NESTING = {"mount", "umount2", "pivot_root", "mount_setattr", "unshare"}
NESTING |= {"sethostname", "setdomainname"}
INSPECTED = {"clone", "clone3", "socket", "prlimit64", "ioctl"}

needs_namespaces = pytest.mark.skipif(probe() is not None, reason=f"no namespaces: {probe()}")


def verdict(program: bytes, arch: int, number: int, *arguments: int) -> int:
    """What the kernel would return: an interpreter of the four instructions in use."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number, arch, 0, *padded)
    at = accumulator = 0
    while True:
        code, if_true, if_false, value = map(int, struct.unpack_from("=HBBI", program, at * 8))
        at += 1
        if code == 0x06:
            return value
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
        else:
            taken = accumulator == value if code == 0x15 else accumulator & value
            at += if_true if taken else if_false


def header_numbers(machine: str) -> dict[str, int]:
    """System-call numbers from the Linux headers that the compiler of kabuild carries."""
    headers = Path(ziglang.__file__).parent / "lib" / "libc" / "include"
    x86 = headers / "x86-linux-any" / "asm" / "unistd_64.h"
    files = (
        [x86]
        if machine == "x86_64"
        else [
            headers / "any-linux-any" / "asm-generic" / "unistd.h",
            headers / "aarch64-linux-any" / "asm" / "unistd_64.h",
        ]
    )
    pattern = re.compile(r"#define __NR(?:3264)?_(\w+)\s+(\d+)\s*$", re.MULTILINE)
    return {
        name: int(number)
        for file in files
        if file.exists()
        for name, number in pattern.findall(file.read_text())
    }


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_are_those_of_the_headers(machine: str) -> None:
    known = header_numbers(machine)
    ours = numbers(machine)

    assert len(set(ours) & set(known)) > 50
    assert {name: known.get(name, number) for name, number in ours.items()} == ours


@pytest.mark.parametrize("machine", MACHINES)
def test_strict_denies_what_it_names(machine: str) -> None:
    program = assemble("strict", machine)
    for name, number in numbers(machine).items():
        if name not in INSPECTED:
            assert verdict(program, ARCH[machine], number) == EPERM, name


@pytest.mark.parametrize("machine", MACHINES)
def test_nestable_allows_namespaces_and_nothing_else(machine: str) -> None:
    program = assemble("nestable", machine)
    for name, number in numbers(machine).items():
        expected = ALLOW if name in NESTING else EPERM
        if name not in INSPECTED:
            assert verdict(program, ARCH[machine], number) == expected, name


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("profile", ["strict", "nestable"])
@given(data=st.data())
def test_all_other_calls_are_allowed(machine: str, profile: Profile, data: st.DataObject) -> None:
    named = set(numbers(machine).values())
    number = data.draw(st.integers(0, 600).filter(lambda n: n not in named))
    arguments = data.draw(st.lists(st.integers(0, 2**64 - 1), max_size=6))

    assert verdict(assemble(profile, machine), ARCH[machine], number, *arguments) == ALLOW


@pytest.mark.parametrize("profile", ["strict", "nestable"])
@given(arch=st.integers(0, 2**32 - 1), number=st.integers(0, 2**32 - 1))
def test_calls_of_another_machine_kill(profile: Profile, arch: int, number: int) -> None:
    """A 32-bit program has other numbers, which the filter would misread."""
    for machine in MACHINES:
        if arch != ARCH[machine]:
            assert verdict(assemble(profile, machine), arch, number) == KILL


@pytest.mark.parametrize("profile", ["strict", "nestable"])
def test_the_x32_interface_does_not_exist(profile: Profile) -> None:
    number = numbers("x86_64")["ptrace"] | 0x40000000

    assert verdict(assemble(profile, "x86_64"), ARCH["x86_64"], number) == ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("bit", [17, 25, 26, 27, 28, 29, 30])
def test_clone_may_make_threads_but_no_namespaces(machine: str, bit: int) -> None:
    number = numbers(machine)["clone"]
    threads = 0x3D0F00  # what pthread_create asks for

    def clone(profile: Profile, flags: int) -> int:
        return verdict(assemble(profile, machine), ARCH[machine], number, flags)

    assert clone("strict", threads) == ALLOW
    assert clone("strict", threads | 1 << bit) == EPERM
    assert clone("nestable", 17 | 1 << bit) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_sockets_are_local_or_of_the_internet(machine: str) -> None:
    number = numbers(machine)["socket"]
    for profile in ("strict", "nestable"):
        allowed = {
            family
            for family in range(64)
            if verdict(assemble(profile, machine), ARCH[machine], number, family) == ALLOW
        }
        assert allowed == {1, 2, 10, 16}


@pytest.mark.parametrize("machine", MACHINES)
def test_limits_of_other_processes_are_out_of_reach(machine: str) -> None:
    """Pid 1 of the sandbox, which enforces the limits, is one of them."""
    number = numbers(machine)["prlimit64"]

    assert verdict(assemble("strict", machine), ARCH[machine], number, 0) == ALLOW
    assert verdict(assemble("strict", machine), ARCH[machine], number, 1) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_terminals_cannot_be_typed_into(machine: str) -> None:
    number, tiocsti, tcgets = numbers(machine)["ioctl"], 0x5412, 0x5401
    program = assemble("strict", machine)

    assert verdict(program, ARCH[machine], number, 0, tiocsti) == EPERM
    assert verdict(program, ARCH[machine], number, 0, 1 << 32 | tiocsti) == EPERM
    assert verdict(program, ARCH[machine], number, 0, tcgets) == ALLOW


def attempts() -> str:
    """The error of each call, made with arguments that do no harm if it is let through."""
    libc = ctypes.CDLL(None, use_errno=True)
    known = numbers(os.uname().machine)
    seen = []
    for name in ("ptrace", "keyctl", "bpf", "io_uring_setup", "process_vm_readv", "unshare"):
        ctypes.set_errno(0)
        result = libc.syscall(ctypes.c_long(known[name]), *[ctypes.c_long(0)] * 6)
        seen.append(f"{name}:{ctypes.get_errno() if result < 0 else 'done'}")
    return " ".join(seen)


@needs_namespaces
def test_the_kernel_enforces_the_strict_filter() -> None:
    free = call_in_fork(attempts)  # ptrace makes the parent a tracer
    strict = call_contained(attempts, limits=Limits())

    assert set(free.split()).isdisjoint(strict.split())
    assert {entry.split(":")[1] for entry in strict.split()} == {"1"}


@needs_namespaces
def test_the_kernel_enforces_the_nestable_filter() -> None:
    nestable = dict(
        entry.split(":")
        for entry in call_contained(attempts, limits=Limits(), seccomp="nestable").split()
    )

    assert nestable.pop("unshare") == "done"
    assert set(nestable.values()) == {"1"}
