// Tells a sanitizing runtime, where one is loaded, which memory the candidate is lent.
#pragma once
#include "../runner/mapping.h"

void announce_config(const Buffers& buffers);
void announce_workspace(const Buffers& buffers, size_t bytes);
