// Cooperative groups within a block: the block itself, and tiles of a wave. Groups of a grid need
// all of its blocks to be resident. This platform does not guarantee that, so the compiler driver
// refuses them by name.
#pragma once

#include <hip/hip_runtime.h>

namespace cooperative_groups {

/// All threads of the block.
class thread_block {
 public:
  void sync() const { __syncthreads(); }
  unsigned size() const { return hipcpu_context.count; }
  unsigned num_threads() const { return hipcpu_context.count; }
  unsigned thread_rank() const { return hipcpu_context.current; }
  dim3 group_index() const { return blockIdx; }
  dim3 thread_index() const { return threadIdx; }
  dim3 group_dim() const { return blockDim; }
  dim3 dim_threads() const { return blockDim; }
};

HIPCPU_INLINE thread_block this_thread_block() { return thread_block(); }

/// `Size` neighbouring lanes of a wave; a power of two.
template <unsigned Size, class Parent = thread_block>
class thread_block_tile {
  static_assert(Size != 0 && (Size & (Size - 1)) == 0, "a tile has a power of two of threads");
  static_assert(Size <= HIPCPU_WAVE_SIZE, "a tile lies within a wave");

 public:
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  unsigned thread_rank() const { return hipcpu::lane() & (Size - 1); }
  unsigned meta_group_rank() const { return hipcpu_context.current / Size; }
  unsigned meta_group_size() const { return (hipcpu_context.count + Size - 1) / Size; }

  void sync(HIPCPU_SITE) const { hipcpu_exchange(0, site, mask()); }
  template <class T>
  T shfl(T value, int source, HIPCPU_SITE) const {
    return hipcpu::shuffle(value, source, Size, site, mask());
  }
  template <class T>
  T shfl_up(T value, unsigned delta, HIPCPU_SITE) const {
    return hipcpu::shuffle_up(value, delta, Size, site, mask());
  }
  template <class T>
  T shfl_down(T value, unsigned delta, HIPCPU_SITE) const {
    return hipcpu::shuffle_down(value, delta, Size, site, mask());
  }
  template <class T>
  T shfl_xor(T value, int bits, HIPCPU_SITE) const {
    return hipcpu::shuffle_xor(value, bits, Size, site, mask());
  }
  unsigned long long ballot(int predicate, HIPCPU_SITE) const {
    return hipcpu::ballot(predicate, site, mask()) >> first_lane();
  }
  int any(int predicate, HIPCPU_SITE) const { return ballot(predicate, site) != 0; }
  int all(int predicate, HIPCPU_SITE) const { return ballot(!predicate, site) == 0; }

 private:
  static unsigned first_lane() { return hipcpu::lane() & ~(Size - 1); }
  static hipcpu::LaneMask mask() {
    const hipcpu::LaneMask lanes = Size == 64 ? ~0ull : (1ull << (Size % 64)) - 1;
    return lanes << first_lane();
  }
};

template <unsigned Size, class Parent>
HIPCPU_INLINE thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
  return thread_block_tile<Size, Parent>();
}

template <class Group>
HIPCPU_INLINE void sync(const Group& group) {
  group.sync();
}

}  // namespace cooperative_groups
