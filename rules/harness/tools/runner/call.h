// Calls a C function whose signature is known only at run time.
#pragma once
#include <stdint.h>

constexpr int kMaxWords = 48;
constexpr int kMaxFloats = 8;

// The arguments of one call, in declared order within each class.
struct Arguments {
  int64_t words[kMaxWords];  // pointers and 64-bit integers
  float floats[kMaxFloats];
  int word_count;
  int float_count;
};

// Appends an argument; false when there is no room for it.
bool push_word(Arguments* arguments, int64_t value);
bool push_float(Arguments* arguments, float value);

// Calls `function` and returns what it left in the integer return register.
int64_t call(void* function, const Arguments* arguments);
