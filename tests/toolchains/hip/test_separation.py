"""No source shows the check of its kernels another kernel than the compiler, nor gets around it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolchains.hip.support import Driver

HEAD = "#include <hip/hip_runtime.h>\n#include <thread>\n"
START = "std::thread other([] {}); other.join();"
HOST = f"static void start(int*) {{ {START} }}\n"
KERNEL = "__global__ void k(int* p) { start(p); }\n"
LAUNCH = 'extern "C" void f(int* p) { k<<<1, 1>>>(p); }\n'
EXPECTED = "a kernel calls only functions with __device__"

BY_MACRO = f"""\
__global__ void k(int* p) {{
#ifdef %s
  *p = 1;
#else
  {START}
#endif
}}
"""
WAYS = {
    "a macro of our own": BY_MACRO % "HIPCPU_CHECKED",
    "a macro for messages": BY_MACRO % "HIPCPU_EXPLAINED",
    "a macro of HIP's front end": BY_MACRO % "__CUDA__",
    "a function of both sides": f"__host__ __device__ {HOST}{KERNEL}",
    "a lambda of the host": (
        f"template <class F> __global__ void k(F f, int*) {{ f(); }}\n"
        f'extern "C" void g(int* p) {{ k<<<1, 1>>>([] {{ {START} }}, p); }}\n'
    ),
    "an overload that only HIP prefers": (
        f"__device__ void start(long, int* p) {{ *p = 1; }}\nvoid start(int, int*) {{ {START} }}\n"
        "__global__ void k(int* p) { start(1, p); }\n"
    ),
    "a pointer to a function": (
        f"{HOST}__global__ void k(void (*start)(int*), int* p) {{ start(p); }}\n"
        'extern "C" void g(int* p) { k<<<1, 1>>>(start, p); }\n'
    ),
    "a pointer to a function instead of a kernel": (
        f"{HOST}"
        'extern "C" void g(int* p) {\n'
        "  void* arguments[] = {&p};\n"
        "  hipLaunchKernel((const void*)start, dim3(1), dim3(1), arguments, 0, nullptr);\n}\n"
    ),
    "another name of a function": (
        f'extern "C" void start(int*) {{ {START} }}\n'
        'extern "C" __device__ void other(int*) __attribute__((alias("start")));\n'
        "__global__ void k(int* p) { other(p); }\n"
    ),
    "another declaration of a function": (
        f'extern "C" void start(int*) {{ {START} }}\n'
        'namespace n { extern "C" __device__ void start(int*); }\n'
        "__global__ void k(int* p) { n::start(p); }\n"
    ),
    "another declaration of the library's": (
        'extern "C" __device__ int pthread_join(unsigned long, void**);\n'
        "__global__ void k(int* p) { pthread_join(*p, nullptr); }\n"
    ),
    "what happens at the end of a scope": (
        f"{HOST}__global__ void k(int* p) {{ int x __attribute__((cleanup(start))) = *p; }}\n"
    ),
    "the copy of an argument": (
        f"struct A {{ A() {{}} A(const A&) {{ {START} }} }};\n__global__ void k(A, int*) {{}}\n"
        'extern "C" void g(int* p) { k<<<1, 1>>>(A(), p); }\n'
    ),
    "code that does not start threads": (
        "__device__ int sum(long, int x) { return x; }\nint sum(int, int x) { return x + 1; }\n"
        "__global__ void k(int* p) { *p = sum(1, *p); }\n"
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_kernels_get_to_no_function_of_the_host(driver: Driver, tmp_path: Path, way: str) -> None:
    source = tmp_path / "kernel.hip"
    launch = "" if "void g(" in WAYS[way] else LAUNCH
    source.write_text(f"{HEAD}{WAYS[way]}{launch}")

    message = driver.refuse(source)

    assert message.startswith(f"{source}:"), message
    assert EXPECTED in message


def test_no_pragma_makes_the_library_the_device_s(driver: Driver, tmp_path: Path) -> None:
    source = tmp_path / "kernel.hip"
    pragma = '_Pragma("clang force_cuda_host_device begin")'
    source.write_text(f"{pragma}\n{HEAD}__global__ void k(int*) {{}}\n{LAUNCH}")

    assert "pragma: 'clang force_cuda_host_device'" in driver.refuse(source)


def test_what_macros_make_is_no_directive(driver: Driver, tmp_path: Path) -> None:
    """An attribute that no compiler knows may contain anything; read again, it would be obeyed."""
    source = tmp_path / "kernel.hip"
    source.write_text(f"{HEAD}#define H #\n[[x::y({{\nH define k other;\n}})]] void g();\n")

    assert "a macro expands to a directive: '#define'" in driver.refuse(source)


HONEST = """\
#define HD __host__ __device__
#define LAUNCH(kernel, ...) kernel<<<1, 1>>>(__VA_ARGS__)
#ifndef __device__
#error a macro, as everywhere
#endif
struct Pair {
  int a, b;
  HD Pair(int a, int b) : a(a), b(b) {}
  HD Pair(const Pair& other) : a(other.a), b(other.b) {}
};
struct Shape { HD virtual int area() const { return 2; } };
struct Square : Shape { HD int area() const override { return 4; } };
HD int twice(int x) { return 2 * x; }
__device__ int thrice(int x) { return 3 * x; }
__constant__ int table[2] = {1, 2};
extern __shared__ int dynamic[];
template <class F> __global__ void apply(F f, int* p) { *p = f(*p); }
template <class F> __global__ void with(Pair pair, F f, int* p) {
  __shared__ int part[2];
  part[0] = pair.a;
  dynamic[0] = f(table[1]);
  *p += part[0] + pair.b + dynamic[0];
}
__global__ void by_pointer(int* p) {
  int (*function)(int) = *p ? thrice : twice;
  Square square;
  const Shape* shape = &square;
  *p = function(*p) + shape->area();
}
extern "C" void f(int* p) {
  std::thread other([=] { LAUNCH(apply, [=] HD(int x) { return twice(x); }, p); });
  other.join();
  LAUNCH(by_pointer, p);
  hipLaunchKernelGGL(with, 1, 1, 8, 0, Pair(1, 2), [=] __device__(int x) { return thrice(x); }, p);
  void* arguments[] = {&p};
  hipLaunchKernel((const void*)by_pointer, dim3(1), dim3(1), arguments, 0, nullptr);
}
"""


def test_honest_code_is_left_alone(driver: Driver, tmp_path: Path) -> None:
    """Beside its host's threads, kernels may have functions of both sides, pointers, lambdas."""
    source = tmp_path / "kernel.hip"
    source.write_text(f"{HEAD}{HONEST}")

    driver.build("kernel", source, "-o", tmp_path / "k.so", "--entry", "f")
