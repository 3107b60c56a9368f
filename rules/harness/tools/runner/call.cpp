#include "call.h"

// One prototype serves every signature of pointers, 64-bit integers and up to eight floats.
//
// System V x86-64 and AAPCS64 treat the two classes separately: integers and pointers fill the
// general registers (six; eight) in order, floats fill xmm0-7 or v0-7 in order, however they
// are interleaved. Arguments that do not fit go on the stack, in declared order, eight bytes for
// an integer. Eight floats always fit into registers, so the stack holds only integers, in
// order. A callee that declares as many or fewer arguments, in any interleaving, finds them
// exactly there. It never reads arguments beyond its own, and the caller removes them from the
// stack.
#if !defined(__x86_64__) && !defined(__aarch64__)
#error "the calling convention of this machine has not been considered"
#endif

#define WORDS_8 int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t
#define FLOATS_8 float, float, float, float, float, float, float, float
#define PASS_8(array, i)                                                             \
  array[i], array[(i) + 1], array[(i) + 2], array[(i) + 3], array[(i) + 4], array[(i) + 5], \
      array[(i) + 6], array[(i) + 7]

static_assert(kMaxWords == 48 && kMaxFloats == 8, "the prototypes below");

using Short = int64_t (*)(WORDS_8, WORDS_8, FLOATS_8);
using Long = int64_t (*)(WORDS_8, WORDS_8, WORDS_8, WORDS_8, WORDS_8, WORDS_8, FLOATS_8);

bool push_word(Arguments* arguments, int64_t value) {
  if (arguments->word_count == kMaxWords) return false;
  arguments->words[arguments->word_count++] = value;
  return true;
}

bool push_float(Arguments* arguments, float value) {
  if (arguments->float_count == kMaxFloats) return false;
  arguments->floats[arguments->float_count++] = value;
  return true;
}

int64_t call(void* function, const Arguments* arguments) {
  const int64_t* w = arguments->words;
  const float* f = arguments->floats;
  if (arguments->word_count <= 16) {
    return reinterpret_cast<Short>(function)(PASS_8(w, 0), PASS_8(w, 8), PASS_8(f, 0));
  }
  return reinterpret_cast<Long>(function)(PASS_8(w, 0), PASS_8(w, 8), PASS_8(w, 16),
                                          PASS_8(w, 24), PASS_8(w, 32), PASS_8(w, 40),
                                          PASS_8(f, 0));
}
