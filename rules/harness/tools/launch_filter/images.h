// Finds the owner of an image of device code, by its address and the source that it names.
#pragma once
#include "owners.h"

// The candidate: a shared library, or a Python module whose kernels Triton compiles.
void set_candidate(const char* path);

// The owner of the code at `image` that the driver is asked to load.
//
// A library's code is the candidate's if it is in the library's mapping, unchanged from the file.
// A Python module's code is the candidate's if it is an ELF file whose line table names the
// module: Triton's compiler writes that for the module's functions. Other code, such as code that
// is made at run time, is foreign, unless it is PyTorch's or the harness's.
Owner owner_of_image(const void* image);

// Whether an address is in the part of PyTorch's library that holds its kernels.
bool in_pytorch(const void* address);
