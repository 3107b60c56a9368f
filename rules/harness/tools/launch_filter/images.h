// Whose an image of device code is, by where it lies and what it says of its source.
#pragma once
#include "owners.h"

// The candidate: a shared library, or a Python module whose kernels Triton compiles.
void set_candidate(const char* path);

// Whose the code at `image` is, as the driver is asked to load it.
//
// A library's code is the candidate's when it lies in the library's mapping, as the file has it.
// A Python module's is when it is an ELF file whose line table names the module, as Triton's
// compiler writes it for functions of that module. Code made at run time is nobody's.
Owner owner_of_image(const void* image);

// Whether an address lies in the mapping of PyTorch's library, where this has its kernels.
bool in_pytorch(const void* address);
