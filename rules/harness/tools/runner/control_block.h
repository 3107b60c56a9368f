// The control block: the same layout as control_block.py, which explains it.
#pragma once
#include <stdint.h>

constexpr uint32_t kBlockMagic = 0x4B434252;  // "RBCK"
constexpr uint32_t kBlockVersion = 1;

struct Tensor {
  char name[32];
  uint64_t first;
  uint64_t size;
  uint32_t dtype;
  uint32_t rank;
  int64_t shape[8];
};
static_assert(sizeof(Tensor) == 120, "the layout of control_block.py");

struct Scalar {
  char name[32];
  uint32_t is_float;
  uint32_t reserved;
  int64_t integer;
  double real;
};
static_assert(sizeof(Scalar) == 56, "the layout of control_block.py");

struct Dim {
  char name[32];
  int64_t value;
};
static_assert(sizeof(Dim) == 40, "the layout of control_block.py");

struct ControlBlock {
  uint32_t magic;
  uint32_t version;
  char symbols[2][128];
  uint32_t inputs;
  uint32_t outputs;
  uint32_t scalars;
  uint32_t dims;
  uint32_t slots;
  uint32_t page;
  uint64_t input_stride;
  uint64_t output_stride;
  uint64_t input_bytes;
  uint64_t output_bytes;
  uint64_t order_offset;

  const Tensor* tensors() const { return reinterpret_cast<const Tensor*>(this + 1); }
  const Scalar* scalar_list() const {
    return reinterpret_cast<const Scalar*>(tensors() + inputs + outputs);
  }
  const Dim* dim_list() const { return reinterpret_cast<const Dim*>(scalar_list() + scalars); }
  // Behind all other parts: the slot of each call of the batch.
  const volatile uint32_t* order() const {
    return reinterpret_cast<const volatile uint32_t*>(
        reinterpret_cast<const char*>(this) + order_offset);
  }
};
static_assert(sizeof(ControlBlock) == 328, "the layout of control_block.py");
