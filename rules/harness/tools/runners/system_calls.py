"""System calls, grouped by how a runner's filter treats them, with their numbers.

Standard library only, because it is used in processes that were just forked.
"""

from __future__ import annotations

_COLUMN = {"x86_64": 0, "aarch64": 1}


class Calls:
    """Names with their numbers on x86-64 and arm64; ``-`` if a machine lacks the call."""

    def __init__(self, text: str) -> None:
        entries = (entry.split() for entry in text.split(","))
        self._numbers = {name: numbers for name, *numbers in entries}

    def numbers(self, machine: str) -> dict[str, int]:
        """The calls that ``machine`` has. Raises KeyError for other machines than the two."""
        column = _COLUMN[machine]
        found = {name: numbers[column] for name, numbers in self._numbers.items()}
        return {name: int(number) for name, number in found.items() if number != "-"}


FATAL = Calls(
    """
    execve 59 221, execveat 322 281, fork 57 -, vfork 58 -, ptrace 101 117,
    process_vm_readv 310 270, process_vm_writev 311 271, pidfd_getfd 438 438, unshare 272 97,
    setns 308 268, mount 165 40, bpf 321 280, io_uring_setup 425 425, move_pages 279 239,
    migrate_pages 256 238
    """
)
"""Calls that no kernel needs: other processes, other programs, memory of other processes."""

CHILDREN = frozenset({"execve", "execveat", "fork", "vfork"})
"""The calls of ``FATAL`` that a program needs if it compiles when it is called."""

INSPECTED = Calls(
    """
    clone 56 220, clone3 435 435, memfd_create 319 279, socket 41 198, madvise 28 233,
    prctl 157 167, ioctl 16 29, mprotect 10 226, mremap 25 216
    """
)
"""Calls that are allowed or not by their arguments."""

WITHOUT_EFFECT = Calls(
    """
    sync 162 81, syncfs 306 267, fsync 74 82, fdatasync 75 83, msync 26 227,
    sync_file_range 277 84, fadvise64 221 223, readahead 187 213
    """
)
"""Calls that wait for the machine's disks, and mean nothing for files in memory."""

UNSUPPORTED = Calls(
    """
    fallocate 285 47, setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7, getxattr 191 8,
    lgetxattr 192 9, fgetxattr 193 10, listxattr 194 11, llistxattr 195 12, flistxattr 196 13,
    removexattr 197 14, lremovexattr 198 15, fremovexattr 199 16
    """
)
"""Calls that programs can do without, because some file systems lack them."""

UNSTOPPABLE = Calls(
    """
    mbind 237 235, set_mempolicy 238 237, set_mempolicy_home_node 450 450,
    process_madvise 440 440, process_mrelease 448 448, io_setup 206 0, io_submit 209 2,
    vmsplice 278 75, splice 275 76, tee 276 77, sendfile 40 71, copy_file_range 326 285,
    mlock 149 228, mlock2 325 284, mlockall 151 230, remap_file_pages 216 234,
    seccomp 317 277, personality 135 92, membarrier 324 283, sched_setattr 314 274,
    sched_setscheduler 144 119, sched_setparam 142 118, setpriority 141 140, ioprio_set 251 30
    """
)
"""Calls that can run for long before a signal is handled, or change how soon it is."""

ALLOWED = Calls(
    """
    read 0 63, write 1 64, readv 19 65, writev 20 66, pread64 17 67, pwrite64 18 68,
    preadv 295 69, pwritev 296 70, preadv2 327 286, pwritev2 328 287, open 2 -, openat 257 56,
    creat 85 -, close 3 57, close_range 436 436, dup 32 23, dup2 33 -, dup3 292 24, lseek 8 62,
    stat 4 -, fstat 5 80, lstat 6 -, newfstatat 262 79, statx 332 291, statfs 137 43,
    fstatfs 138 44, access 21 -, faccessat 269 48, faccessat2 439 439, getdents 78 -,
    getdents64 217 61, getcwd 79 17, chdir 80 49, fchdir 81 50, readlink 89 -, readlinkat 267 78,
    mkdir 83 -, mkdirat 258 34, rmdir 84 -, unlink 87 -, unlinkat 263 35, rename 82 -,
    renameat 264 38, renameat2 316 276, link 86 -, linkat 265 37, symlink 88 -, symlinkat 266 36,
    chmod 90 -, fchmod 91 52, fchmodat 268 53, truncate 76 45, ftruncate 77 46, umask 95 166,
    utimensat 280 88, fcntl 72 25, flock 73 32, pipe 22 -, pipe2 293 59, eventfd 284 -,
    eventfd2 290 19, poll 7 -, ppoll 271 73, select 23 -, pselect6 270 72, epoll_create 213 -,
    epoll_create1 291 20, epoll_ctl 233 21, epoll_wait 232 -, epoll_pwait 281 22,
    socketpair 53 199, connect 42 203, sendto 44 206, sendmsg 46 211, recvfrom 45 207,
    recvmsg 47 212, shutdown 48 210, getsockopt 55 209, setsockopt 54 208, getsockname 51 204,
    getpeername 52 205, mmap 9 222, munmap 11 215, brk 12 214,
    get_mempolicy 239 236, futex 202 98, set_robust_list 273 99, rseq 334 293,
    set_tid_address 218 96, sched_yield 24 124, sched_getaffinity 204 123,
    sched_setaffinity 203 122, sched_getparam 143 121, sched_getscheduler 145 120,
    sched_getattr 315 275, sched_get_priority_max 146 125, sched_get_priority_min 147 126,
    sched_rr_get_interval 148 127, getpriority 140 141, getcpu 309 168, rt_sigaction 13 134,
    rt_sigprocmask 14 135, rt_sigreturn 15 139, rt_sigpending 127 136, rt_sigtimedwait 128 137,
    rt_sigsuspend 130 133, sigaltstack 131 132, pause 34 -, kill 62 129, tkill 200 130,
    tgkill 234 131, restart_syscall 219 128, nanosleep 35 101, clock_nanosleep 230 115,
    clock_gettime 228 113, clock_getres 229 114, gettimeofday 96 169, time 201 -, alarm 37 -,
    setitimer 38 103, getitimer 36 102, timer_create 222 107, timer_settime 223 110,
    timer_gettime 224 108, timer_getoverrun 225 109, timer_delete 226 111, getpid 39 172,
    getppid 110 173, gettid 186 178, getuid 102 174, geteuid 107 175, getgid 104 176,
    getegid 108 177, getgroups 115 158, getresuid 118 148, getresgid 120 150, getpgrp 111 -,
    getpgid 121 155, getsid 124 156, getrlimit 97 163, setrlimit 160 164, prlimit64 302 261,
    getrusage 98 165, times 100 153, sysinfo 99 179, uname 63 160, getrandom 318 278,
    arch_prctl 158 -, wait4 61 260, waitid 247 95, exit 60 93, exit_group 231 94
    """
)
"""Calls that programs for the CPU need: files, memory, threads, clocks, signals. Each ends soon,
or when a signal arrives."""
