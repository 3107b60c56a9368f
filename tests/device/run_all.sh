#!/bin/sh
# Everything that needs an NVIDIA GPU, in one call, on a machine with torch, triton, nvcc and g++:
#
#     tests/device/run_all.sh OUT [STAGE...]
#
# Writes OUT/<stage>.json. Stages: machine, build, side_by_side, suite, cheats, agreement, roofline.
# The repository is copied first, and adopts the compilers of the machine there.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
exec "${PYTHON:-python3}" "$here/evaluate.py" "$@"
