// A kernel that draws tokens: each row's from the softmax of its logits. What is not defined
// here, a candidate defines before: `uniform`, a number in [0, 1) for one draw.
#include <hip/hip_runtime.h>

__device__ __forceinline__ uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

__device__ __forceinline__ float fraction(uint64_t bits) { return (bits >> 40) * 0x1p-24f; }
