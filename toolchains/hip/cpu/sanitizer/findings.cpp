#include "findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace hipcpu {

Image image;

namespace {

char kernel_name[96];

constexpr uint32_t kMostFindings = 100;
constexpr uint32_t kMostCallers = 6;
constexpr size_t kMostBytes = 1280;  // less than a pipe takes at once

uint64_t known[kMostFindings];  // digests of kind and places
uint32_t finding_count;

const char* or_dash(const char* text) { return text[0] == '\0' ? "-" : text; }

void digest(uint64_t* value, const char* text) {
  for (; *text != '\0'; ++text) {
    *value = (*value ^ static_cast<unsigned char>(*text)) * 0x100000001b3ull;
  }
  *value *= 0x100000001b3ull;
}

bool is_new(const char* kind, const char* place, const char* other) {
  uint64_t value = 0xcbf29ce484222325ull;
  digest(&value, kind);
  digest(&value, place);
  digest(&value, other);
  for (uint32_t i = 0; i < finding_count; ++i) {
    if (known[i] == value) return false;
  }
  if (finding_count == kMostFindings) return false;
  known[finding_count++] = value;
  return true;
}

}  // namespace

void name_kernel(const char* name) {
  const size_t end = strlen(name);
  const bool bracketed = end > 1 && name[0] == '(' && name[end - 1] == ')';
  const int length = static_cast<int>(bracketed ? end - 2 : end);
  snprintf(kernel_name, sizeof kernel_name, "%.*s", length, name + (bracketed ? 1 : 0));
}

void found(const char* kind, const char* place, const char* other, const char* format, ...) {
  if (!is_new(kind, place, other)) return;
  char text[512];
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof text, format, values);
  va_end(values);
  char line[kMostBytes];
  const int length = snprintf(line, sizeof line, "\nhipcpu-sanitizer %s %s %s %s; %s\n", kind,
                              place, or_dash(other), or_dash(kernel_name), text);
  // On its own line, even if the kernel has printed part of one.
  if (write(STDERR_FILENO, line, static_cast<size_t>(length)) < 0) {
    // Nobody reads stderr.
  }
}

// Frames are linked by their pointers; a fiber's chain of them ends with a null.
PlaceText place_of(const Caller& caller) {
  PlaceText place = {};
  size_t used = 0;
  uintptr_t code = caller.code;
  void* const* frame = caller.frame;
  for (uint32_t i = 0; i < kMostCallers && image.holds(code); ++i) {
    used += static_cast<size_t>(snprintf(place.text + used, sizeof place.text - used, "%s%x",
                                         i == 0 ? "" : ",", image.offset(code) - 1));
    void* const* next = static_cast<void* const*>(*frame);
    if (next <= frame || next > frame + kStackBytes / sizeof *frame) break;
    code = reinterpret_cast<uintptr_t>(next[1]);
    frame = next;
  }
  return place;
}

PlaceText place_of(uint32_t code) {
  PlaceText place = {};
  snprintf(place.text, sizeof place.text, "%x", code - 1);
  return place;
}

}  // namespace hipcpu
