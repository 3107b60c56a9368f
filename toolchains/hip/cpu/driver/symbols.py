"""Which symbols of other libraries compiled code may use.

A kernel's library sees the runtime, mathematics, and a harmless part of the C library. This keeps
mistakes out, not attackers: the sandbox does that.
"""

from __future__ import annotations

from elf import Machine


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


RUNTIME = _words(
    """
    hipcpu_barrier hipcpu_barrier_and hipcpu_barrier_count hipcpu_barrier_or hipcpu_clock
    hipcpu_context hipcpu_device_attribute hipcpu_device_properties hipcpu_exchange hipcpu_fail
    hipcpu_launch hipcpu_malloc hipcpu_next_thread hipcpu_occupancy hipcpu_symbol_copy
    hipDeviceReset hipDeviceSynchronize hipDriverGetVersion hipEventCreateWithFlags
    hipEventDestroy hipEventElapsedTime hipEventRecord hipEventSynchronize hipFree hipGetDevice
    hipGetDeviceCount hipGetErrorName hipGetErrorString hipGetLastError hipInit hipMemGetInfo
    hipMemcpy hipMemcpy2D hipMemset hipMemsetD32 hipPeekAtLastError hipRuntimeGetVersion
    hipSetDevice hipStreamCreateWithPriority hipStreamDestroy hipStreamSynchronize
    hipStreamWaitEvent
    """
)
"""What ``libhipcpu.so`` exports; a test compares it with the library."""

_MATHEMATICS = _words(
    """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2
    expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp lgamma llrint
    llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter pow remainder
    remquo rint round scalbln scalbn sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn
    """
)
LIBM = frozenset(name + suffix for name in _MATHEMATICS for suffix in ("", "f"))

LIBC = _words(
    """
    abort calloc free malloc realloc posix_memalign aligned_alloc abs labs llabs div ldiv lldiv
    qsort bsearch strtod strtof strtol strtoll strtoul strtoull atoi atol atoll atof getenv
    memchr memcmp memcpy memmove memset strcat strchr strcmp strcpy strlen strncat strncmp
    strncpy strrchr strstr __assert_fail printf fprintf snprintf vsnprintf sprintf vprintf
    vfprintf puts putchar fputs fputc fwrite fflush stderr stdout clock clock_gettime
    __tls_get_addr __errno_location __printf_chk __fprintf_chk __snprintf_chk __memcpy_chk
    __memset_chk __memmove_chk
    """
)

# What the headers of glibc 2.38 and later call functions of LIBC; zig's are older.
RENAMED = _words("__isoc23_strtol __isoc23_strtoll __isoc23_strtoul __isoc23_strtoull")

# Functions that a compiler calls for what a processor cannot do: libgcc has them.
COMPILER_SUPPORT = _words(
    """
    __divdc3 __divsc3 __divti3 __extendhfdf2 __extendhfsf2 __modti3 __muldc3 __mulsc3 __powidf2
    __powisf2 __truncdfbf2 __truncdfhf2 __truncsfbf2 __truncsfhf2 __udivti3 __umodti3
    """
)

# What the loader or the compiler's own start-up code defines.
IMPLICIT = _words(
    """
    _GLOBAL_OFFSET_TABLE_ __cxa_finalize __gmon_start__ _ITM_deregisterTMCloneTable
    _ITM_registerTMCloneTable
    """
)

# Functions whose oldest version, which the loader would take for a reference without a version,
# is a slow wrapper (expf), takes other arguments (sched_getaffinity) or another structure.
_VERSIONS = {
    **dict.fromkeys(_words("expf exp2f logf log2f powf"), "GLIBC_2.27"),
    **dict.fromkeys(_words("exp exp2 log log2 pow"), "GLIBC_2.29"),
    **dict.fromkeys(
        _words(
            """
            __libc_start_main dlclose dlerror dlopen dlsym pthread_create pthread_detach
            pthread_join
            """
        ),
        "GLIBC_2.34",
    ),
}
_X86_64_VERSIONS = {
    **dict.fromkeys(
        _words(
            """
            pthread_cond_broadcast pthread_cond_destroy pthread_cond_init pthread_cond_signal
            pthread_cond_timedwait pthread_cond_wait
            """
        ),
        "GLIBC_2.3.2",
    ),
    **dict.fromkeys(_words("sched_getaffinity sched_setaffinity"), "GLIBC_2.3.4"),
    **dict.fromkeys(_words("posix_spawn posix_spawnp"), "GLIBC_2.15"),
    "memcpy": "GLIBC_2.14",
    "realpath": "GLIBC_2.3",
}


def version(name: str, machine: Machine) -> str:
    """The version of a glibc symbol to link with; empty where the oldest one is right."""
    if machine is Machine.X86_64 and name in _X86_64_VERSIONS:
        return _X86_64_VERSIONS[name]
    return _VERSIONS.get(name, "")
