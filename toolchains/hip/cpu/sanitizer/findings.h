// Findings, as lines that a judge reads from standard error.
//
//   hipcpu-sanitizer KIND PLACE OTHER KERNEL; TEXT
//
// KERNEL is the kernel, as spelt in the launch. A place is a list, separated by commas; the first
// entry in the author's files counts. An entry is `at:FILE:LINE:COLUMN` of the source as it was
// compiled, or the hexadecimal offset of an instruction in the kernel's library. OTHER is a place,
// which replaces `{other}` in the text. OTHER and KERNEL are `-` if there is none.
#pragma once

#include "../runtime/worker.h"

namespace hipcpu {

/// Where the kernel's code called the sanitizer.
struct Caller {
  uintptr_t code;
  void* const* frame;
};
#define HIPCPU_CALLER                                             \
  hipcpu::Caller {                                                \
    reinterpret_cast<uintptr_t>(__builtin_return_address(0)),     \
        static_cast<void* const*>(__builtin_frame_address(0))     \
  }

/// The image of the kernel's library.
struct Image {
  uintptr_t begin;
  uintptr_t end;

  bool holds(uintptr_t address) const { return address >= begin && address < end; }
  uint32_t offset(uintptr_t address) const { return static_cast<uint32_t>(address - begin); }
};
extern Image image;

/// The name of the kernel that is launched next.
void name_kernel(const char* name);

/// Reports a finding once for each pair of places.
__attribute__((format(printf, 4, 5))) void found(const char* kind, const char* place,
                                                 const char* other, const char* format, ...);

/// A place as text: the caller and its callers, or one instruction of the library.
struct PlaceText {
  char text[192];
};
PlaceText place_of(const Caller& caller);
PlaceText place_of(uint32_t code);

}  // namespace hipcpu
