"""Load, analyse, schedule: the whole of a build in one page. Read this first.

    request -> load    -> Loaded     workspace, packages, the labels that were asked for
            -> plan    -> Plan       the action graph and what of it was asked for
            -> execute -> BuildResult  results by label
            -> Summary               the scoreboard and the exit code

Each stage takes and returns frozen values; nothing calls back.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from kabuild.analysis import Analysis, analyze
from kabuild.base.clock import Clock, SystemClock
from kabuild.base.errors import ExitCode, KabuildError, NoTestsError, Reason, UsageError
from kabuild.base.suggest import suggest
from kabuild.execution import CachedExecutor, CachePolicy, Inputs, LocalStrategy, fresh_gates
from kabuild.execution.devices import DevicePool
from kabuild.execution.forecast import Forecast, forecast
from kabuild.execution.host import cpus
from kabuild.execution.platforms import survey
from kabuild.execution.upkeep import collect_if_due
from kabuild.loading import (
    Loader,
    expand,
    find_workspace,
    load_workspace,
    source_roots,
)
from kabuild.loading.request import Request
from kabuild.loading.workspace import Workspace
from kabuild.model.artifact import Source
from kabuild.model.device import Devices
from kabuild.model.event import EventSink, Warned
from kabuild.model.label import Label
from kabuild.model.options import MOST_TRIALS, ON_REQUEST, POLICIES, Options
from kabuild.model.platform import Platform
from kabuild.model.result import Outcome, Settled
from kabuild.provision import provision
from kabuild.report.scoreboard import TaskRow, Totals, rows, totals
from kabuild.sandbox import Spawner
from kabuild.scheduler import FileLeases, History, Scheduler, pools_of
from kabuild.store import Store

DEFAULT_AGENT = "expert"


@dataclass(frozen=True)
class Loaded:
    """A workspace, the labels that a request means in it, and the devices that it may use."""

    workspace: Workspace
    loader: Loader
    labels: tuple[Label, ...]
    options: Options
    devices: Devices


@dataclass(frozen=True)
class Plan:
    """What will run, if no cache knows it.

    ``tasks`` has the (gate, label) pairs that were asked for, by task; ``roots`` all
    actions that were asked for; ``consulted`` the files that toolchains are known by.
    """

    loaded: Loaded
    analysis: Analysis
    tasks: Mapping[Label, tuple[tuple[str, Label], ...]] = field(hash=False)
    roots: tuple[Label, ...]
    consulted: tuple[str, ...] = ()


@dataclass(frozen=True)
class Summary:
    """How a build ended."""

    plan: Plan
    table: tuple[TaskRow, ...]
    settled: Mapping[Label, Settled] = field(hash=False)
    totals: Totals
    seconds: float
    interrupted: bool
    exit_code: ExitCode


def load(request: Request) -> Loaded:
    """Find the workspace and expand the patterns. Raises LoadError and UsageError."""
    root = find_workspace(request.cwd)
    workspace = load_workspace(root)
    loader = Loader(workspace)
    package = workspace.package_of(request.cwd)
    labels = expand(loader, request.patterns, package=package, tags=request.tags)
    platform, devices = _machine(request, workspace)
    options = _options(request, workspace, platform)
    trials = max((request.trials, *(label.trial for label in labels)))
    if trials > MOST_TRIALS:
        what = f"trial {trials} of a task, but a build has at most {MOST_TRIALS}"
        raise UsageError(Reason.BAD_FLAG, what, hint="--agent_rerun=NUMBER draws other ones")
    return Loaded(workspace, loader, labels, replace(options, trials=trials), devices)


def plan(request: Request, loaded: Loaded, store: Store) -> Plan:
    """Turn labels into actions. Raises AnalysisError, LoadError and NoTestsError."""
    analysis, consulted = _analyze(request, loaded, store)
    if not request.judge:
        builds = (part for label in analysis.requested for part in analysis.builds(label))
        return Plan(loaded, analysis, {}, tuple(dict.fromkeys(builds)), consulted)
    tasks = _asked_gates(request, analysis)
    if not tasks:
        raise NoTestsError(
            Reason.NO_TESTS,
            f"no tests match {' '.join(request.patterns)}",
            hint="kabuild query 'tests(//...)' lists what can be tested",
        )
    _require_named(request, tasks, loaded.options.platform.name)
    if request.solution and len(tasks) > 1:
        raise UsageError(
            Reason.BAD_SOLUTION,
            f"--solution is for one task, but {len(tasks)} match",
            hint="name the task that the solution is for",
        )
    roots = tuple(label for gates in tasks.values() for _, label in gates)
    return Plan(loaded, analysis, tasks, roots, consulted)


def foresee(request: Request, planned: Plan, store: Store) -> dict[str, Forecast]:
    """What ``execute`` would do with every action that was asked for; nothing runs."""
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
    """Run what no cache knows, and say what came of everything.

    ``spawner`` is used and left open where one is given, so that its interpreters stay warm.
    """
    jobs = request.jobs or cpus()
    policy = CachePolicy(
        read=lambda action: not action.gate or action.gate != request.fresh_gate,
        runs_per_gate=request.runs_per_gate,
    )
    if not request.read_cached_gates:
        policy = CachePolicy(read=fresh_gates, runs_per_gate=request.runs_per_gate)

    def warn(text: str) -> None:
        sink.emit(Warned(text))

    for note in planned.loaded.devices.notes:
        warn(note)
    with nullcontext(spawner) if spawner else Spawner() as spawning:
        strategy = LocalStrategy(
            store,
            spawning,
            debug=request.keep_sandboxes,
            isolate=request.hermetic,
            warn=warn,
            devices=DevicePool.of(planned.loaded.devices),
        )
        executor = CachedExecutor(
            _inputs(planned, store), store.cas, store.actions, strategy, policy
        )
        scheduler = Scheduler(
            executor,
            sink,
            FileLeases(store.leases),
            jobs=jobs,
            keep_going=request.keep_going,
            stop=stop,
            history=History(store.timings),
            clock=clock or SystemClock(),
            pools=pools_of(planned.loaded.devices),
        )
        platform = str(planned.loaded.options.platform)
        result = scheduler.run(planned.analysis.graph, planned.roots, platform=platform)
    workspace = planned.loaded.workspace
    collect_if_due(store, workspace.cache_size, workspace.root, warn)
    settled = {item.label: item for item in result.settled.values()}
    table = rows(planned.tasks, settled, _telling(planned))
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
    """By task and trial, the action whose facts a report shows."""
    targets = planned.analysis.targets
    return {
        task: action.label
        for task in planned.tasks
        for action in targets[task.in_trial(1)].actions
        if action.facts and action.label.trial == task.trial
    }


def _inputs(planned: Plan, store: Store) -> Inputs:
    roots = source_roots(planned.loaded.workspace.root)
    return Inputs({str(name): path for name, path in roots.items()}, store.index)


def _analyze(request: Request, loaded: Loaded, store: Store) -> tuple[Analysis, tuple[str, ...]]:
    """Analysis, with the store's memory of files, so that toolchains cost a few stats.

    Also the files that it asked the memory for.
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
        analysis = analyze(loaded.loader, loaded.labels, loaded.options, resolve=resolver)
    return analysis, tuple(sorted(consulted))


def _options(request: Request, workspace: Workspace, platform: Platform) -> Options:
    policy = request.policy or workspace.policy or "aka"
    if policy not in POLICIES:
        hint = suggest(policy, POLICIES) or f"policies: {', '.join(POLICIES)}"
        raise UsageError(Reason.BAD_FLAG, f"unknown scoring policy '{policy}'", hint=hint)
    defaults = Options(
        platform=platform,
        agent=workspace.agent_label(request.agent or workspace.agent or DEFAULT_AGENT),
    )
    return Options(
        platform=defaults.platform,
        agent=defaults.agent,
        solution=_solution(request),
        policy=policy,
        samples=request.samples or defaults.samples,
        salt=_salt(request) or workspace.salt or defaults.salt,
        run=request.agent_rerun,
    )


def _machine(request: Request, workspace: Workspace) -> tuple[Platform, Devices]:
    """The platform by flag, or else by WORKSPACE.toml, whose line an error then names."""
    if request.platform is not None:
        return survey(Platform.parse(request.platform), request.devices)
    try:
        return survey(Platform.parse(workspace.platform or "cpu"), request.devices)
    except KabuildError as error:
        if not request.devices:
            error.position = workspace.position("defaults", "platform")
        raise


def _solution(request: Request) -> Source | None:
    if request.solution is None:
        return None
    path = (request.cwd / request.solution).resolve()
    if not path.exists():
        raise UsageError(
            Reason.BAD_SOLUTION,
            f"--solution: no file or directory '{request.solution}'",
            hint="give the kernel file, or the directory that holds it",
        )
    return Source(f"{path}/" if path.is_dir() else str(path), "user")


def _salt(request: Request) -> str:
    if request.salt_file is None:
        return ""
    try:
        salt = (request.cwd / request.salt_file).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "no UTF-8 text"
        raise UsageError(
            Reason.BAD_FLAG, f"--unseen_salt_file: {request.salt_file}: {why}"
        ) from None
    if len(salt) < 16:
        raise UsageError(
            Reason.BAD_FLAG,
            f"--unseen_salt_file: {request.salt_file} holds {len(salt)} characters",
            hint="a salt that cannot be guessed has at least 16: openssl rand -hex 16 > salt",
        )
    return salt


def _asked_gates(
    request: Request, analysis: Analysis
) -> dict[Label, tuple[tuple[str, Label], ...]]:
    """By task and trial, in order. A gate that the label does not name is not asked for."""
    tasks: dict[Label, tuple[tuple[str, Label], ...]] = {}
    for label in analysis.requested:
        owner = analysis.owners[label]
        gates = analysis.gates(label, request.gates)
        pairs = ((analysis.graph.actions[str(part)].gate, part) for part in gates)
        kept = tuple(p for p in pairs if not request.gates or p[0] in request.gates)
        for pair in kept:
            task = owner.in_trial(pair[1].trial)
            tasks[task] = tuple(dict.fromkeys((*tasks.get(task, ()), pair)))
    return tasks


def _require_named(
    request: Request, tasks: Mapping[Label, tuple[tuple[str, Label], ...]], platform: str
) -> None:
    """A gate that is asked for by name and that no task has was asked for in vain."""
    offered = {gate for gates in tasks.values() for gate, _ in gates}
    for gate in request.gates:
        if gate in ON_REQUEST and gate not in offered:
            raise UsageError(
                Reason.UNKNOWN_GATE,
                f"{gate} is not available on {platform} for {' '.join(request.patterns)}",
                hint="leave it out, test HIP tasks with --platform=cpu, or fetch what it takes "
                "('kabuild toolchain list' has it)",
            )


def _exit_code(
    table: tuple[TaskRow, ...],
    settled: Mapping[Label, Settled],
    *,
    interrupted: bool,
    judge: bool,
) -> ExitCode:
    """What decides first: the user, the machine, the tools, then the verdicts."""
    outcomes = {item.outcome for item in settled.values()}
    if interrupted:
        return ExitCode.INTERRUPTED
    if Outcome.INFRA in outcomes:
        return ExitCode.ENVIRONMENT
    if Outcome.FAILED in outcomes:
        return ExitCode.BUILD_FAILED
    if judge:
        return ExitCode.OK if all(row.passed for row in table) else ExitCode.TESTS_FAILED
    verdicts = [item.verdict for item in settled.values() if item.verdict]
    good = all(verdict.verdict.value == "PASS" for verdict in verdicts)
    return ExitCode.OK if good else ExitCode.BUILD_FAILED
