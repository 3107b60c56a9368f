"""Which symbols of other libraries compiled code may use.

A kernel's library sees the runtime, mathematics, and a harmless part of the C library. This keeps
mistakes out, not attackers: the sandbox does that.
"""

from __future__ import annotations

from elf import Machine


def words(text: str) -> frozenset[str]:
    """The words of a text: how names are listed here."""
    return frozenset(text.split())


_MATHEMATICS = words(
    """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2
    expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp lgamma llrint
    llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter pow remainder
    remquo rint round scalbln scalbn sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn
    """
)
LIBM = frozenset(name + suffix for name in _MATHEMATICS for suffix in ("", "f"))

LIBC = words(
    """
    abort calloc free malloc realloc posix_memalign aligned_alloc abs labs llabs div ldiv lldiv
    qsort bsearch strtod strtof strtol strtoll strtoul strtoull atoi atol atoll atof getenv
    memchr memcmp memcpy memmove memset strcat strchr strcmp strcpy strlen strncat strncmp
    strncpy strrchr strstr __assert_fail printf fprintf snprintf vsnprintf sprintf vprintf
    vfprintf puts putchar fputs fputc fwrite fflush stderr stdout clock clock_gettime
    __tls_get_addr __errno_location __printf_chk __fprintf_chk __snprintf_chk __memcpy_chk
    __memset_chk __memmove_chk sched_yield pthread_create pthread_detach pthread_equal pthread_join
    pthread_once pthread_self pthread_cond_broadcast pthread_cond_destroy pthread_cond_init
    pthread_cond_signal pthread_cond_timedwait pthread_cond_wait pthread_getspecific
    pthread_key_create pthread_mutex_destroy pthread_mutex_init pthread_mutex_lock
    pthread_mutex_trylock pthread_mutex_unlock pthread_mutexattr_destroy pthread_mutexattr_init
    pthread_mutexattr_settype pthread_setspecific
    """
)

# What the C++ library has beyond its headers: `library.cpp` has these parts of it for clang of the
# ziglang wheel, which comes without, and takes the second names from the C library.
LIBRARY = words(
    """
    _ZNKSt3__119__shared_weak_count13__get_deleterERKSt9type_info _ZNSt3__112__next_primeEm
    _ZNSt3__114__shared_countD2Ev _ZNSt3__119__shared_weak_count14__release_weakEv
    _ZNSt3__119__shared_weak_count4lockEv _ZNSt3__119__shared_weak_countD2Ev
    _ZNSt3__120__throw_system_errorEiPKc _ZNSt3__122__libcpp_verbose_abortEPKcz _ZSt7nothrow
    _ZSt9terminatev _ZdaPv _ZdaPvRKSt9nothrow_t _ZdaPvSt11align_val_t _ZdaPvm
    _ZdaPvmSt11align_val_t _ZdlPv _ZdlPvRKSt9nothrow_t _ZdlPvSt11align_val_t _ZdlPvm
    _ZdlPvmSt11align_val_t _Znam _ZnamRKSt9nothrow_t _ZnamSt11align_val_t _Znwm
    _ZnwmRKSt9nothrow_t _ZnwmSt11align_val_t __cxa_atexit __cxa_pure_virtual
    __cxa_thread_atexit __dso_handle
    """
)
LIBRARY_TAKES = words(
    """
    abort fputs free malloc posix_memalign stderr vfprintf __cxa_atexit __cxa_thread_atexit_impl
    """
)

# The same of sorting, in `sorting.cpp`, with the type that it sorts.
_SORTED = {
    "a": "signed char",
    "c": "char",
    "d": "double",
    "f": "float",
    "h": "unsigned char",
    "i": "int",
    "j": "unsigned",
    "l": "long",
    "m": "unsigned long",
    "s": "short",
    "t": "unsigned short",
    "x": "long long",
    "y": "unsigned long long",
}
SORTING = {
    f"_ZNSt3__16__sortIRNS_6__lessI{letter}{letter}EEP{letter}EEvT0_S5_T_": type_
    for letter, type_ in _SORTED.items()
}

# The same of threads, in `threads.cpp`, which needs `library.cpp`, too.
THREADS = words(
    """
    _ZNSt3__115__thread_structC1Ev _ZNSt3__115__thread_structD1Ev
    _ZNSt3__115recursive_mutex4lockEv _ZNSt3__115recursive_mutex6unlockEv
    _ZNSt3__115recursive_mutex8try_lockEv _ZNSt3__115recursive_mutexC1Ev
    _ZNSt3__115recursive_mutexD1Ev _ZNSt3__118condition_variable10notify_allEv
    _ZNSt3__118condition_variable10notify_oneEv
    _ZNSt3__118condition_variable4waitERNS_11unique_lockINS_5mutexEEE
    _ZNSt3__118condition_variableD1Ev _ZNSt3__119__thread_local_dataEv
    _ZNSt3__15mutex4lockEv _ZNSt3__15mutex6unlockEv
    _ZNSt3__15mutex8try_lockEv _ZNSt3__16thread20hardware_concurrencyEv _ZNSt3__16thread4joinEv
    _ZNSt3__16thread6detachEv _ZNSt3__16threadD1Ev
    """
)
THREADS_TAKE = words(
    """
    abort sysconf pthread_cond_broadcast pthread_cond_destroy
    pthread_cond_signal pthread_cond_wait pthread_detach pthread_join pthread_key_create
    pthread_mutex_destroy pthread_mutex_init pthread_mutex_lock pthread_mutex_trylock
    pthread_mutex_unlock pthread_mutexattr_destroy pthread_mutexattr_init
    pthread_mutexattr_settype pthread_once
    """
)

# What the headers of glibc 2.38 and later call functions of LIBC; zig's are older.
RENAMED = words("__isoc23_strtol __isoc23_strtoll __isoc23_strtoul __isoc23_strtoull")

# Functions that a compiler calls for what a processor cannot do. libgcc has them; `support/` has
# them for clang of the ziglang wheel, which comes without.
_COMPILER_SUPPORT = words(
    """
    __addtf3 __divdc3 __divmodti4 __divsc3 __divtf3 __divti3 __eqtf2 __extendbfsf2 __extenddftf2
    __extendhfdf2 __extendhfsf2 __extendhftf2 __extendsftf2 __fixdfti __fixhfti __fixsfti
    __fixtfdi __fixtfsi __fixtfti __fixunsdfti __fixunshfti __fixunssfti __fixunstfdi
    __fixunstfsi __fixunstfti __floatditf __floatsitf __floattibf __floattidf __floattihf
    __floattisf __floattitf __floatunditf __floatunsitf __floatuntibf __floatuntidf
    __floatuntihf __floatuntisf __floatuntitf __getf2 __gttf2 __letf2 __lttf2 __modti3 __muldc3
    __mulsc3 __multf3 __netf2 __powidf2 __powisf2 __subtf3 __truncdfbf2 __truncdfhf2
    __truncsfbf2 __truncsfhf2 __trunctfbf2 __trunctfdf2 __trunctfhf2 __trunctfsf2 __udivmodti4
    __udivti3 __umodti3 __unordtf2
    """
)
_EXTENDED_SUPPORT = words(
    """
    __divxc3 __extendhfxf2 __extendxftf2 __fixunsxfti __fixxfti __floattixf __floatuntixf
    __mulxc3 __powixf2 __trunctfxf2 __truncxfbf2 __truncxfhf2
    """
)
_QUAD_SUPPORT = words("__divtc3 __multc3 __powitf2")


def compiler_support(machine: Machine) -> frozenset[str]:
    """The support functions of a processor; some depend on its ``long double``."""
    return _COMPILER_SUPPORT | (_EXTENDED_SUPPORT if machine is Machine.X86_64 else _QUAD_SUPPORT)


# What the loader or the compiler's own start-up code defines.
IMPLICIT = words(
    """
    _GLOBAL_OFFSET_TABLE_ __cxa_finalize __gmon_start__ _ITM_deregisterTMCloneTable
    _ITM_registerTMCloneTable
    """
)

# Functions whose oldest version, which the loader would take for a reference without a version,
# is a slow wrapper (expf), takes other arguments (sched_getaffinity) or another structure.
_VERSIONS = {
    **dict.fromkeys(words("expf exp2f logf log2f powf"), "GLIBC_2.27"),
    **dict.fromkeys(words("exp exp2 log log2 pow"), "GLIBC_2.29"),
    **dict.fromkeys(
        words(
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
        words(
            """
            pthread_cond_broadcast pthread_cond_destroy pthread_cond_init pthread_cond_signal
            pthread_cond_timedwait pthread_cond_wait
            """
        ),
        "GLIBC_2.3.2",
    ),
    **dict.fromkeys(words("sched_getaffinity sched_setaffinity"), "GLIBC_2.3.4"),
    **dict.fromkeys(words("posix_spawn posix_spawnp"), "GLIBC_2.15"),
    "memcpy": "GLIBC_2.14",
    "realpath": "GLIBC_2.3",
}


def version(name: str, machine: Machine) -> str:
    """The version of a glibc symbol to link with; empty if the oldest one is right."""
    if machine is Machine.X86_64 and name in _X86_64_VERSIONS:
        return _X86_64_VERSIONS[name]
    return _VERSIONS.get(name, "")
