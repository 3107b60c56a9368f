#pragma once

#include <hipcuda/platform.h>
#include <hipcuda/vector_operators.h>
