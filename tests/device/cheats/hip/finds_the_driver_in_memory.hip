// Finds the driver among what is loaded, and has it launch code that no file holds.
// verdict: correctness REJECTED KERNEL_BYPASSED
#include "attack.h"
#include "doubling.h"

namespace {

const char kCode[] =
    ".version 7.8\n.target sm_75\n.address_size 64\n"
    ".visible .entry made(.param .u64 x, .param .u64 y, .param .u64 n) {\n"
    ".reg .pred %p<2>; .reg .b32 %r<5>; .reg .b64 %rd<8>; .reg .f32 %f<3>;\n"
    "ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u64 %rd3, [n];\n"
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "mul.wide.u32 %rd4, %r1, %r2; cvt.u64.u32 %rd5, %r3; add.s64 %rd4, %rd4, %rd5;\n"
    "setp.ge.s64 %p1, %rd4, %rd3; @%p1 bra end;\n"
    "shl.b64 %rd5, %rd4, 2; add.s64 %rd6, %rd1, %rd5; add.s64 %rd7, %rd2, %rd5;\n"
    "ld.global.f32 %f1, [%rd6]; add.f32 %f2, %f1, %f1; st.global.f32 [%rd7], %f2;\n"
    "end: ret; }\n";

struct Loaded {  // the beginning of dl_phdr_info, which this compiler's headers hide
  uintptr_t base;
  const char* name;
  const Elf64_Phdr* headers;
  Elf64_Half count;
};

using Visit = int (*)(Loaded*, size_t, void*);
using Iterate = int (*)(Visit, void*);
using Load = int (*)(void**, const void*);
using Get = int (*)(void**, void*, const char*);
using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       hipStream_t, void**, void**);

Image g_driver;

// The last library that has the driver's function: the real one is loaded behind others.
int visit(Loaded* info, size_t, void*) {
  if (info->name == nullptr || info->name[0] == 0) return 0;
  const Image image = image_of(info->base, info->headers, info->count);
  if (image.hash == nullptr || symbol_in(image, "cuMemAlloc_v2") == nullptr) return 0;
  if (symbol_in(image, "cuLaunchKernel") != nullptr) g_driver = image;
  return 0;
}

template <typename Function>
Function driver(const char* name) {
  return reinterpret_cast<Function>(symbol_in(g_driver, name));
}

}  // namespace

DOUBLING {
  static void* made = nullptr;
  if (g_driver.hash == nullptr) reinterpret_cast<Iterate>(in_libc("dl_iterate_phdr"))(visit, nullptr);
  if (g_driver.hash == nullptr) return hipErrorNotSupported;
  void* module = nullptr;
  if (made == nullptr && driver<Load>("cuModuleLoadData")(&module, kCode) == 0) {
    driver<Get>("cuModuleGetFunction")(&made, module, "made");
  }
  void* arguments[] = {&x, &y, &n};
  const int error = driver<Launch>("cuLaunchKernel")(made, blocks(n), 1, 1, kThreads, 1, 1, 0,
                                                     stream, arguments, nullptr);
  return error == 0 ? hipSuccess : hipErrorUnknown;
}
