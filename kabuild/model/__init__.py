"""Layer 1: the nouns of the design as frozen values, without I/O. This page is the glossary.

Patterns select targets, rules turn targets into actions, actions have results, gates have verdicts.
Each noun is defined in the module that is named with its group.

What users write (``label``, ``target``, ``platform``, ``device``, ``options``):

- ``Label``: the name ``//package:target``. A ``Pattern`` such as ``//tasks/...`` names several.
- ``Target``: one declaration in a ``BUILD.toml``, with its position. A task, an agent and a
  toolchain are targets; its rule says what they mean.
- ``Platform``: where candidates run, ``cpu`` or a declared one such as ``cuda``, with the
  properties of the machine that can change results. A ``Device`` is one accelerator of it.
- ``Options``: the flags of a build that change its actions. All other flags change no result.

What rules make of it, before anything runs (``action``, ``graph``):

- ``Action``: one command with everything that may change its result. It reads artifacts: a
  ``Source`` is a file of the user, a ``Literal`` has bytes that a rule computed, and an ``Output``
  names a file that another action will make. It runs with a ``Toolchain``, which is pinned by
  content. ``Limits`` bound what it may use; ``Resources`` are what it occupies meanwhile.
- ``ActionGraph``: the actions of a build. An action may need another one for its output (the
  artifact is an input, so a change of its content changes the key), or only require that it ended
  well (order alone, as a gate requires the one before it).

What a build finds out (``digest``, ``result``, ``event``):

- ``Digest``: SHA-256 and size of content. The digest of an action with all its inputs is its key:
  actions with equal keys are interchangeable, so a stored result is as good as a run.
- ``ActionResult``: the outputs of an action that ran. ``Settled``: how it ended in this build, from
  the cache or from a run. Its ``Outcome`` is about the action, never about the candidate.
- An ``Event`` reports a step of a build. Progress, logs and reports are folds over events.

What judging finds out (``gate``, ``verdict``, ``gate_result``, ``task_result``, ``speedup``):

- ``Gate``: a step of judging that the rule of a task declares, such as ``compile`` or ``perf``.
  Each is an action. ``Verdict``: PASS, FAIL, REJECTED or SKIPPED. ``GateVerdict``: the content of
  its ``verdict.json``, with the reason.
- ``GateResult``: one gate of one task, judged now or read from a bundle. ``TaskResult``: all gates
  of one task; every command and report shows this one value. A ``Speedup`` has its 95 % interval.

Words of the benchmark that are not classes here:

- *task*: a target with a kernel to optimise, an oracle that defines correct results, and configs. A
  *config* is one choice of sizes, dtype and scalars: *visible* ones are shown to agents and timed,
  *hidden* (or *unseen*) ones are drawn when a candidate is judged.
- *agent*: a target that turns a task into a *solution*, the files that the task lets it edit. A
  *trial* is one numbered run of it.
- *candidate*: the solution under test. *Baseline*: the task's own kernel, or PyTorch; the candidate
  is timed against it.
- *judge*: the trusted process that draws inputs, knows the oracle and keeps the clock. *Runner*:
  the sandboxed process that holds the candidate.
- *bundle*: a published evaluation in one file, with all that a rerun needs.

An infrastructure failure is an outcome, not a verdict: the machine failed, so nothing was judged.
"""
