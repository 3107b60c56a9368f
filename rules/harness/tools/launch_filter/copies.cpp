#include "copies.h"

#include <string.h>

namespace {

constexpr char kSpace[] = "_ZN2at6native";
const char* const kLoops[] = {
    "18elementwise_kernelI",
    "32elementwise_kernel_manual_unrollI",  // on AMD's devices
    "29vectorized_elementwise_kernelI",
    "27unrolled_elementwise_kernelI",
};
constexpr char kUnrolled[] = "27unrolled_elementwise_kernelI";
constexpr char kNoCast[] = "ZNS0_22gpu_kernel_impl_nocastI";
constexpr char kCast[] = "ZNS0_15gpu_kernel_implI";
constexpr char kLoads[] = "15LoadWithoutCastE";
constexpr char kStores[] = "16StoreWithoutCastE";
constexpr char kFill[] = "NS0_11FillFunctorI";
constexpr char kCopy[] = "NS0_23direct_copy_kernel_cudaER";
const char* const kConversions[] = {
    "NS0_24float16_copy_kernel_cudaER",
    "NS0_25bfloat16_copy_kernel_cudaER",
    "NS0_33float16tofloat32_copy_kernel_cudaER",
    "NS0_34bfloat16tofloat32_copy_kernel_cudaER",
    "NS0_23float8_copy_kernel_cudaER",
    "NS0_23float4_copy_kernel_cudaER",
};

// The text after the prefix `start`; null without that prefix.
const char* behind(const char* text, const char* start) {
  const size_t length = strlen(start);
  return strncmp(text, start, length) == 0 ? text + length : nullptr;
}

template <int count>
const char* behind_one(const char* text, const char* const (&starts)[count]) {
  for (const char* start : starts) {
    const char* rest = behind(text, start);
    if (rest != nullptr) return rest;
  }
  return nullptr;
}

// The text after arguments that are numbers, such as `Li128E`.
const char* behind_numbers(const char* text) {
  while (text[0] == 'L' && text[1] == 'i') {
    const char* end = text + 2;
    while (*end >= '0' && *end <= '9') ++end;
    if (*end != 'E') break;
    text = end + 1;
  }
  return text;
}

}  // namespace

Copying copying(const char* name) {
  const char* rest = behind(name, kSpace);
  if (rest == nullptr) return kComputes;
  const bool unrolled = behind(rest, kUnrolled) != nullptr;
  rest = behind_one(rest, kLoops);
  if (rest == nullptr) return kComputes;
  rest = behind_numbers(rest);
  const char* exact = behind(rest, kNoCast);
  const char* cast = behind(rest, kCast);
  if (exact != nullptr) rest = exact;
  if (cast != nullptr) rest = cast;
  if (behind(rest, kFill) != nullptr) return kMoves;
  while (*rest == 'Z') ++rest;  // one for each level of nested functions; the outermost follows
  if (behind_one(rest, kConversions) != nullptr) return kConverts;
  if (behind(rest, kCopy) == nullptr) return kComputes;
  // An unrolled loop names its loads and stores after the function that it calls.
  const bool plain = !unrolled || (strstr(rest, kLoads) != nullptr && strstr(rest, kStores) != nullptr);
  return cast == nullptr && plain ? kMoves : kConverts;
}
