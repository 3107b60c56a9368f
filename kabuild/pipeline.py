"""Load, analyse, schedule: a whole build on one page. Read this first.

    request -> load    -> Loaded     workspace, packages, the labels that were asked for
            -> plan    -> Plan       the action graph and what of it was asked for
            -> execute -> BuildResult  results by label
            -> Summary               the scoreboard and the exit code

Each stage takes and returns frozen values; nothing calls back.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from kabuild.analysis import Analysis, Judging, analyze
from kabuild.base.clock import Clock, SystemClock
from kabuild.base.errors import ExitCode, KabuildError, NoTestsError, Reason, UsageError
from kabuild.delegation import delegation
from kabuild.execution import CachedExecutor, CachePolicy, Inputs, LocalStrategy, fresh_gates
from kabuild.execution.background_gc import collect_if_due
from kabuild.execution.forecast import Forecast, forecast
from kabuild.execution.host import cpus
from kabuild.execution.isolation import require_sandbox
from kabuild.given import check_given, check_names, check_numbers, salt_of, solution_of
from kabuild.loading import (
    Loader,
    expand,
    find_workspace,
    load_workspace,
    source_roots,
)
from kabuild.loading.request import Request
from kabuild.loading.workspace import DEFAULT_AGENT, Workspace
from kabuild.model.action import AGENT_FACTS
from kabuild.model.device import Devices
from kabuild.model.event import EventSink, Warned
from kabuild.model.gate import Gate, Pick, check_policy, choose, merged, named
from kabuild.model.label import Label, repository_of
from kabuild.model.options import MOST_TRIALS, Options
from kabuild.model.platform import CPU, Platform
from kabuild.model.result import Outcome, Settled
from kabuild.model.task_result import TaskResult
from kabuild.provision import intact, provision
from kabuild.report.places import Places
from kabuild.report.scoreboard import Totals, task_results, totals
from kabuild.sandbox import Spawner
from kabuild.scheduler import FileLeases, History, Scheduler, pools_of
from kabuild.sharing import sharing
from kabuild.store import Store
from kabuild.survey import pool_of, survey

Tasks = Mapping[Label, tuple[Judging, ...]]
"""The gates to run, by task and trial."""


@dataclass(frozen=True)
class Loaded:
    """A workspace, the labels of a request, and the devices that it may use."""

    workspace: Workspace
    loader: Loader
    labels: tuple[Label, ...]
    options: Options
    devices: Devices


@dataclass(frozen=True)
class Plan:
    """What has to run if nothing is cached.

    ``tasks`` has the gates that were asked for, with their labels, by task; ``roots`` all
    actions that were asked for; ``consulted`` the files that toolchains are known by. ``gates``
    are those that the rules of the requested targets declare, in the order of judging.
    """

    loaded: Loaded
    analysis: Analysis
    tasks: Tasks = field(hash=False)
    roots: tuple[Label, ...]
    consulted: tuple[str, ...] = ()
    gates: tuple[Gate, ...] = ()


@dataclass(frozen=True)
class Summary:
    """How a build ended."""

    plan: Plan
    table: tuple[TaskResult, ...]
    settled: Mapping[Label, Settled] = field(hash=False)
    totals: Totals
    seconds: float
    interrupted: bool
    exit_code: ExitCode


def load(request: Request) -> Loaded:
    """Find the workspace and expand the patterns. Raises LoadError and UsageError."""
    check_numbers(request)
    check_names(request)
    workspace = load_workspace(find_workspace(request.cwd))
    loader = Loader(workspace)
    package = workspace.package_of(request.cwd)
    labels = expand(loader, request.patterns, package=package, tags=request.tags)
    loader.check(labels)
    return settle(request, loader, labels)


def settle(request: Request, loader: Loader, labels: tuple[Label, ...]) -> Loaded:
    """The platform and the options for ``labels``. Raises UsageError."""
    platform, devices = _machine(request, loader)
    options = _options(request, loader.workspace, platform)
    trials = max((request.trials, *(label.trial for label in labels)))
    if trials > MOST_TRIALS:
        what = f"trial {trials} of a task, but a build has at most {MOST_TRIALS}"
        raise UsageError(
            Reason.BAD_FLAG, what, hint="--agent_rerun=NUMBER starts a new set of trials"
        )
    return Loaded(loader.workspace, loader, labels, replace(options, trials=trials), devices)


def plan(request: Request, loaded: Loaded, store: Store) -> Plan:
    """Turn labels into actions. Raises AnalysisError, LoadError, NoTestsError and UsageError."""
    declared = _declared(loaded)
    _check_policy(request, loaded, declared)
    names = _chosen(request, loaded, declared)
    analysis, consulted = _analyze(request, loaded, store)
    if not request.judge:
        check_given(request, analysis.graph)
        builds = (part for label in analysis.requested for part in analysis.builds(label))
        return Plan(loaded, analysis, {}, tuple(dict.fromkeys(builds)), consulted, declared)
    tasks = _asked_gates(analysis, names)
    if not tasks:
        tags = f" with the tags '{request.tags}'" if request.tags else ""
        what = f"no tasks match {' '.join(request.patterns)}{tags}"
        hint = "kabuild query 'tests(//...)' lists what can be tested"
        raise NoTestsError(Reason.NO_TESTS, what, hint=hint)
    _require_named(request, tasks, declared, loaded.options.platform.name)
    if request.solution and len(tasks) > 1:
        raise UsageError(
            Reason.BAD_SOLUTION,
            f"a solution is for one task, but {len(tasks)} match",
            hint="name the task that the solution is for",
        )
    check_given(request, analysis.graph)
    roots = tuple(label for gates in tasks.values() for _, label in gates)
    return Plan(loaded, analysis, tasks, roots, consulted, declared)


def foresee(request: Request, planned: Plan, store: Store) -> dict[str, Forecast]:
    """What ``execute`` would do with every requested action; nothing runs."""
    with Spawner() as spawner:
        strategy = LocalStrategy(store, spawner, isolate=request.hermetic)
        executor = CachedExecutor(_inputs(planned, store), store.cas, store.actions, strategy)
        return forecast(planned.analysis.graph, map(str, planned.roots), executor)


def execute(
    request: Request,
    planned: Plan,
    store: Store,
    sink: EventSink,
    *,
    stop: threading.Event,
    clock: Clock | None = None,
    spawner: Spawner | None = None,
) -> Summary:
    """Run what is not cached; returns the results of everything.

    ``spawner`` is used and left open where one is given, so that its interpreters stay warm.
    """
    jobs = request.jobs or cpus()
    anew = frozenset(planned.roots if request.fresh else ())
    policy = CachePolicy(
        read=lambda action: action.label not in anew, runs_per_gate=request.runs_per_gate
    )
    if not request.read_cached_gates:
        policy = CachePolicy(read=fresh_gates, runs_per_gate=request.runs_per_gate)

    def warn(text: str) -> None:
        sink.emit(Warned(text))

    if any(repository_of(task.package) for task in planned.tasks):
        require_sandbox("a benchmark's code", waived=not request.hermetic)
    places = _places(request, planned, store)
    sink = places.sink(sink)
    loader = planned.loaded.loader
    for note in (*planned.loaded.devices.notes, *loader.left_out.values(), *loader.notes.values()):
        warn(note)
    own_salt = planned.loaded.options.salt if request.salt_file else ""
    workspace, graph = planned.loaded.workspace, planned.analysis.graph
    shares = sharing(request, workspace, graph, store, own_salt=own_salt, warn=warn, stop=stop)
    fleets = delegation(request, workspace, graph, store, own_salt=own_salt, stop=stop)
    spawners = nullcontext(spawner) if spawner else Spawner()
    with spawners as spawning, shares as shared, fleets as fleet:
        strategy = LocalStrategy(
            store,
            spawning,
            debug=request.keep_sandboxes,
            isolate=request.hermetic,
            warn=warn,
            devices=pool_of(planned.loaded.loader.platforms, planned.loaded.devices),
            intact=intact(store),
        )
        executor = CachedExecutor(
            _inputs(planned, store),
            store.cas,
            store.actions,
            strategy,
            policy,
            shared=shared,
            remote=fleet,
        )
        scheduler = Scheduler(
            executor,
            sink,
            FileLeases(store.leases),
            jobs=jobs,
            remote_jobs=request.remote.jobs if request.remote else 1,
            keep_going=request.keep_going,
            stop=stop,
            history=History(store.timings),
            clock=clock or SystemClock(),
            pools=pools_of(planned.loaded.devices),
        )
        platform = str(planned.loaded.options.platform)
        result = scheduler.run(graph, planned.roots, platform=platform)
    collect_if_due(store, workspace.cache_size, workspace.root, warn)
    settled = {item.label: places.of(item) for item in result.settled.values()}
    table = task_results(planned.tasks, settled, _telling(planned))
    return Summary(
        plan=planned,
        table=table,
        settled=settled,
        totals=totals(table, settled.values()),
        seconds=result.seconds,
        interrupted=result.interrupted,
        exit_code=_exit_code(table, settled, interrupted=result.interrupted, judge=request.judge),
    )


def _telling(planned: Plan) -> dict[Label, Label]:
    """By task and trial, the session of its agent, whose facts reports show."""
    targets = planned.analysis.targets
    return {
        task: action.label
        for task in planned.tasks
        for action in targets[task.in_trial(1)].actions
        if action.facts == AGENT_FACTS and action.label.trial == task.trial
    }


def _places(request: Request, planned: Plan, store: Store) -> Places:
    given = planned.loaded.options.solution
    typed = {given.path: str(request.solution)} if given else {}
    return Places(planned.analysis.graph, _roots(planned), request.cwd, typed, store)


def _inputs(planned: Plan, store: Store) -> Inputs:
    return Inputs(_roots(planned), store.index)


def _roots(planned: Plan) -> dict[str, Path]:
    """The directories of the named source roots."""
    workspace = planned.loaded.workspace
    roots = source_roots(workspace.root, workspace.repositories.values())
    return {str(name): path for name, path in roots.items()}


def _analyze(request: Request, loaded: Loaded, store: Store) -> tuple[Analysis, tuple[str, ...]]:
    """Analysis with the store's file index, so that toolchains cost a few stats.

    Also returns the files that it looked up.
    """
    consulted: set[str] = set()
    root = loaded.workspace.root
    with provision(
        root,
        store,
        fetch=request.fetch,
        locked=request.locked,
        consulted=lambda path: consulted.add(str(path)),
    ) as resolver:
        try:
            analysis = analyze(loaded.loader, loaded.labels, loaded.options, resolve=resolver)
        except UsageError as error:
            if error.reason is Reason.UNKNOWN_AGENT and not request.agent:
                error.position = loaded.workspace.position("defaults", "agent")
            raise
    return analysis, tuple(sorted(consulted))


def _options(request: Request, workspace: Workspace, platform: Platform) -> Options:
    defaults = Options(
        platform=platform,
        agent=workspace.agent_label(request.agent or workspace.agent or DEFAULT_AGENT),
    )
    return replace(
        defaults,
        solution=solution_of(request),
        policy=request.policy or workspace.policy or defaults.policy,
        samples=request.samples or defaults.samples,
        salt=salt_of(request) or workspace.salt or defaults.salt,
        run=request.agent_rerun,
    )


def _check_policy(request: Request, loaded: Loaded, declared: Sequence[Gate]) -> None:
    """Refuse a policy that the tasks' gates do not know, or else no gate. Raises UsageError."""
    workspace, gates = loaded.workspace, declared
    try:
        if request.policy or workspace.policy:
            if not any(gate.policies for gate in gates):
                gates = loaded.loader.rules.gates().all
            check_policy(loaded.options.policy, gates)
    except UsageError as error:
        if not request.policy:
            is_scoring = "policy" in workspace.file.values.get("scoring", {})
            error.position = workspace.position("scoring" if is_scoring else "defaults", "policy")
        raise


def _machine(request: Request, loader: Loader) -> tuple[Platform, Devices]:
    """The platform of the flag, or else of WORKSPACE.toml, whose line errors then name."""
    platforms, workspace = loader.platforms, loader.workspace
    if request.platform is not None:
        return survey(platforms, platforms.parse(request.platform), request.devices)
    try:
        return survey(platforms, platforms.parse(workspace.platform or CPU), request.devices)
    except KabuildError as error:
        if not request.devices:
            error.position = workspace.position("defaults", "platform")
        raise


def _declared(loaded: Loaded) -> tuple[Gate, ...]:
    """The gates of the requested targets' rules, in the order of judging."""
    loader = loaded.loader
    kinds = {target.kind: loader.rule(target) for target in map(loader.target, loaded.labels)}
    return merged(rule.gates for rule in kinds.values())


def _chosen(request: Request, loaded: Loaded, declared: Sequence[Gate]) -> tuple[str, ...] | None:
    """The names of the selected gates; None if only labels select. Raises UsageError."""
    if not request.gates and request.pick is Pick.USUAL:
        return None
    if {word.lstrip("+-") for word in request.gates} <= {gate.name for gate in declared}:
        return choose(request.gates, request.pick, declared)
    # If other rules declare it, it is a gate that these tasks do not have.
    return choose(request.gates, request.pick, merged([declared, loaded.loader.rules.gates().all]))


def _asked_gates(analysis: Analysis, names: Collection[str] | None) -> Tasks:
    """By task and trial, in order, without gates that the label excludes."""
    tasks: dict[Label, tuple[Judging, ...]] = {}
    for label in analysis.requested:
        owner = analysis.owners[label]
        for pair in analysis.gates(label, names):
            task = owner.in_trial(pair[1].trial)
            tasks[task] = tuple(dict.fromkeys((*tasks.get(task, ()), pair)))
    return tasks


def _require_named(request: Request, tasks: Tasks, declared: Sequence[Gate], where: str) -> None:
    """Refuse a requested gate that no task has."""
    offered = {gate.name for gates in tasks.values() for gate, _ in gates}
    in_vain = named(request.gates) - {gate.name for gate in declared if gate.usual} - offered
    for name in sorted(in_vain):
        raise UsageError(
            Reason.UNKNOWN_GATE,
            f"{name} is not available on {where} for {' '.join(request.patterns)}",
            hint="leave it out, choose another --platform, or fetch its toolchain "
            "(see 'kabuild toolchain list')",
        )


def _exit_code(
    table: tuple[TaskResult, ...],
    settled: Mapping[Label, Settled],
    *,
    interrupted: bool,
    judge: bool,
) -> ExitCode:
    """The exit code: the user decides first, then the machine, the tools, the verdicts."""
    outcomes = {item.outcome for item in settled.values()}
    if interrupted:
        return ExitCode.INTERRUPTED
    if Outcome.INFRA in outcomes:
        return ExitCode.ENVIRONMENT
    if Outcome.FAILED in outcomes:
        return ExitCode.BUILD_FAILED
    if judge:
        return ExitCode.OK if all(result.passed for result in table) else ExitCode.TESTS_FAILED
    verdicts = [item.verdict for item in settled.values() if item.verdict]
    good = all(verdict.verdict.value == "PASS" for verdict in verdicts)
    return ExitCode.OK if good else ExitCode.BUILD_FAILED
