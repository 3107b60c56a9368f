// Tells a sanitizing runtime, if one is loaded, which memory is lent to the candidate.
#pragma once
#include "../runner/mapping.h"

void announce_config(const Buffers& buffers);
void announce_workspace(const Buffers& buffers, size_t bytes);
