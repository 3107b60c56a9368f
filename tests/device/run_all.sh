#!/bin/sh
# Everything that needs an NVIDIA GPU, in one call, on a machine with torch, triton, nvcc and g++:
#
#     tests/device/run_all.sh OUT [STAGE...]
#
# Writes OUT/<stage>.json as soon as a stage is done. Stages: machine, build, suite, bundle, replay,
# side_by_side, cheats, extension, agreement, durations, memory, baselines, verifying, tuner, api,
# sanitize, counters, refusals, copies, roofline, analysis, model, modelled, ordered, originals,
# given; each has a limit of its own, so that one that hangs does not cost the others. The
# repository is copied first, and adopts the compilers of the machine there. Several devices are all
# used.
# --task //tasks/... chooses tasks, --seconds is for all stages together.
#
# suite that is cut off has judged some tasks in full; bundle leaves these as OUT/expert.kab, too.
# verifying runs no program: it says for which tasks the judge's own work takes long.
# replay reruns each --bundle FILE, as a rule one of another machine; with --task only these tasks,
# and with --gates only these gates, and then no choice of a baseline.
# tuner leaves OUT/tuner.kab, too; it works for 120 s at each task, or for --tuner_seconds.
# counters and analysis need Nsight Compute. Give analysis what tests/device/counted.py DIR has
# written on any machine, as --analysis_counts DIR. It leaves the profiler's tables as
# OUT/ncu-N.csv, too.
# model writes model.json after each step, so that one that is cut off has left something; --model
# chooses one model.
# modelled and ordered need what tests/device/variant_counts.py DIR has written on any machine as
# --variant_counts DIR; tests/device/ranking.py draws what it leaves.
# originals judges the originals of --task @NAME//... against themselves, by --gates or all of them;
# --task @NAME//x/y:y.proof proves that one task means what its original does.
# It needs a workspace where kabuild import has been run, as --imports DIR, and its checkouts.
# given times given kernels by a clock of its own, each on one config: their headroom.
# copies times copies of as many bytes as the largest config of each expert moves, for roofline.
# HOST_COMPILER=g++ takes the machine's own compiler for the host, even if ziglang is installed: it
# then only counts, for agents.
# machine.json has the revision of the tree: what git says, or, where the tree is a plain archive,
# what the file REVISION at its root holds, or $REVISION.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
export PYTHONPATH="$here/../..${PYTHONPATH:+:$PYTHONPATH}"
exec "${PYTHON:-python3}" "$here/evaluate.py" "$@"
