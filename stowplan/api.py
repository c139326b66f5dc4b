"""The functions of the Python interface, one for each command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from stowplan.answers.compare import Comparison
from stowplan.answers.compare import compare as compare_problem
from stowplan.answers.frontier import Frontier, Point, climb
from stowplan.answers.nested import nest
from stowplan.answers.solve import Solution, solve_snapshot
from stowplan.answers.validate import Validation
from stowplan.answers.validate import validate as validate_traces
from stowplan.explaining.named import named
from stowplan.explaining.node import NodeExplanation, explain_node
from stowplan.explaining.pending import PendingExplanation, explain_pending
from stowplan.explaining.pod import PodExplanation, explain_pod
from stowplan.instances.anonymize import Pseudonyms
from stowplan.instances.completeness import require_whole
from stowplan.instances.load import load_bytes
from stowplan.instances.manifest_list import manifest_list, written
from stowplan.instances.traces import trace_files
from stowplan.models.assignment import Assignment
from stowplan.models.errors import InputError
from stowplan.models.options import Options
from stowplan.models.plan import Plan
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.models.stop import Stop
from stowplan.optimizer.backend import Backend
from stowplan.optimizer.run import Progress, silent
from stowplan.planning import drain as draining
from stowplan.planning import fit as fitting
from stowplan.planning.plan import Planned, make_plan
from stowplan.planning.replay import Replay, replay_plan
from stowplan.plans.replay.distribution import RUNS
from stowplan.settings.problem import document_profile, make_problem
from stowplan.settings.terms import Terms


def solve(
    snapshot: Snapshot,
    settings: Settings | None = None,
    options: Options | None = None,
    *,
    candidates: Sequence[Mapping[str, str]] = (),
    stop: Stop | None = None,
    progress: Progress = silent,
    backend: Backend | None = None,
) -> Solution:
    """Find the best placement, with a proof or a gap.

    Parameters
    ----------
    snapshot
        The cluster.
    settings, options
        The settings define the problem, the options the search; by default those of the command line.
    candidates
        Further assignments to start from, as node name by pod key.
    stop
        Set it, from any thread, to get the best answer so far.
    progress
        Called whenever a value or a bound improves.
    backend
        Solves sub-problems; by default processes of its own.

    Raises
    ------
    InputError
        With the argument or the setting that cannot be used.
    """
    settings, options = checked_arguments(snapshot, settings, options, backend)
    starts = _assignments(snapshot, candidates)
    compiled = make_problem(snapshot, settings)
    return solve_snapshot(compiled, options, candidates=starts, stop=stop, progress=progress, backend=backend)


def compare(
    snapshot: Snapshot,
    settings: Settings | None = None,
    options: Options | None = None,
    *,
    scores: bool = True,
    stop: Stop | None = None,
    progress: Progress = silent,
    backend: Backend | None = None,
) -> Comparison:
    """Compare today's placement, kube-scheduler's, and the best one.

    Parameters
    ----------
    snapshot
        The cluster.
    scores
        Also compare final-state plugin scores.
    settings, options, stop, progress, backend
        As `solve` takes them.

    Raises
    ------
    InputError
        With the argument or the setting that cannot be used.
    """
    settings, options = checked_arguments(snapshot, settings, options, backend)
    compiled = make_problem(snapshot, settings)
    return compare_problem(compiled, options, scores=scores, stop=stop, progress=progress, backend=backend)


def frontier(
    snapshot: Snapshot,
    settings: Settings | None = None,
    options: Options | None = None,
    *,
    limits: Sequence[int] | None = None,
    nested: bool = False,
    stop: Stop | None = None,
    tell: Callable[[Point], None] = lambda point: None,
    backend: Backend | None = None,
) -> Frontier:
    """Find the best placement for each of several limits on the number of moves, and without a limit.

    Parameters
    ----------
    snapshot
        The cluster.
    limits
        Limits to try besides no limit; by default 0, 1, 2, 5, 10, and so on.
    nested
        Also find placements that each begin with the moves of the one before, unless the search was stopped.
    tell
        Called with each point when it is found.
    settings, options, stop, backend
        As `solve` takes them; the time limit is for all points.

    Raises
    ------
    InputError
        With the argument or the setting that cannot be used, or the limit that is negative.
    """
    settings, options = checked_arguments(snapshot, settings, options, backend)
    if settings.max_moves is not None:
        raise InputError(f"is {settings.max_moves}; must be None: give limits instead", field="max_moves")
    compiled = make_problem(snapshot, settings)
    found = climb(compiled, options, limits=limits, stop=stop, tell=tell, backend=backend)
    return nest(found) if nested and found.complete else found


def plan(
    snapshot: Snapshot,
    settings: Settings | None = None,
    options: Options | None = None,
    terms: Terms | None = None,
    *,
    candidates: Sequence[Mapping[str, str]] = (),
    partial: bool = False,
    stop: Stop | None = None,
    progress: Progress = silent,
    backend: Backend | None = None,
) -> Planned:
    """Find the best reachable placement, and the moves to it in waves.

    Parameters
    ----------
    snapshot
        The cluster.
    settings
        Their executor determines which pods can be moved; without one, evictions go through the Eviction API.
    terms
        Terms of the plan; by default those of the command line.
    partial
        Plan although the snapshot lacks pods, or what is known about nodes.
    options, candidates, stop, progress, backend
        As `solve` takes them.

    Raises
    ------
    InputError
        With the argument or the setting that cannot be used, or with what the snapshot lacks.
    """
    settings, options = checked_arguments(snapshot, settings, options, backend, partial=partial)
    return make_plan(
        snapshot,
        settings,
        options,
        terms,
        candidates=_assignments(snapshot, candidates),
        stop=stop,
        progress=progress,
        backend=backend,
    )


def drain(
    snapshot: Snapshot,
    nodes: str | Sequence[str],
    settings: Settings | None = None,
    options: Options | None = None,
    terms: Terms | None = None,
    *,
    partial: bool = False,
    stop: Stop | None = None,
    progress: Progress = silent,
    backend: Backend | None = None,
) -> draining.Drained:
    """Plan the cheapest way to empty nodes.

    Parameters
    ----------
    snapshot
        The cluster.
    nodes
        Names of the nodes.
    nodes
        The name of a node, or several.
    settings, options, terms, partial, stop, progress, backend
        As `plan` takes them.

    Raises
    ------
    InputError
        With the node, the argument or the setting that cannot be used, or with what the snapshot lacks.
    """
    settings, options = checked_arguments(snapshot, settings, options, backend, partial=partial)
    return draining.drain(
        snapshot,
        _names("nodes", nodes),
        settings,
        options,
        terms,
        stop=stop,
        progress=progress,
        backend=backend,
    )


def fit(
    snapshot: Snapshot,
    pods: str | Sequence[str],
    settings: Settings | None = None,
    options: Options | None = None,
    terms: Terms | None = None,
    *,
    partial: bool = False,
    stop: Stop | None = None,
    progress: Progress = silent,
    backend: Backend | None = None,
) -> fitting.Fitted:
    """Plan the cheapest way to schedule pending pods.

    Parameters
    ----------
    snapshot
        The cluster.
    pods
        One or several, as ``namespace/name``.
    settings, options, terms, partial, stop, progress, backend
        As `plan` takes them.

    Raises
    ------
    InputError
        With the pod, the argument or the setting that cannot be used, or with what the snapshot lacks.
    """
    settings, options = checked_arguments(snapshot, settings, options, backend, partial=partial)
    return fitting.fit(
        snapshot,
        fitting.admitting(settings, snapshot, _names("pods", pods)),
        options,
        terms,
        stop=stop,
        progress=progress,
        backend=backend,
    )


def explain(
    snapshot: Snapshot,
    what: str | None = None,
    settings: Settings | None = None,
    options: Options | None = None,
    *,
    search: bool = True,
    partial: bool = False,
    stop: Stop | None = None,
    progress: Progress = silent,
    backend: Backend | None = None,
) -> PodExplanation | NodeExplanation | PendingExplanation:
    """Explain a pod, a node, or what holds all pending pods back.

    Parameters
    ----------
    snapshot
        The cluster.
    what
        A pod as ``namespace/name``, or a node as ``node/name``; by default all pending pods.
    search
        Whether to search for the best placement, to say where it has the pod.
    partial
        Explain a node although the snapshot lacks pods, or what is known about nodes.
    settings, options, stop, progress, backend
        As `solve` takes them.

    Raises
    ------
    InputError
        With the pod, the node, the argument or the setting that cannot be used, or with what the snapshot lacks.
    """
    if not isinstance(what, str | None):
        raise _mistaken("what", what, "a name, or None for all pending pods")
    kind, name = named(what)
    settings, options = checked_arguments(snapshot, settings, options, backend, partial=partial or kind != "node")
    if kind == "node":
        return explain_node(snapshot, name, settings, options, stop=stop, progress=progress, backend=backend)
    compiled = make_problem(snapshot, settings)
    if kind == "all":
        return explain_pending(compiled, stopped=(stop or Stop()).is_set)
    asked = options if search else None
    return explain_pod(compiled, name, asked, stop=stop, progress=progress, backend=backend)


def replay(
    plan: Planned | Plan,
    snapshot: Snapshot,
    *,
    steered: bool = False,
    runs: int = RUNS,
    seed: int = 0,
    config: str | None = None,
    stop: Stop | None = None,
) -> Replay:
    """Carry a plan out in a simulated cluster, and return where its pods land.

    Parameters
    ----------
    plan
        What `plan` returns, or a plan that was read.
    snapshot
        The cluster that the plan begins in.
    steered
        Whether the extender that knows the plan is asked; otherwise kube-scheduler decides alone.
    runs
        Number of further replays in which ties, sampled nodes, and the order of events are left to chance.
    seed
        Of chance.
    config
        The KubeSchedulerConfiguration file that the plan was made with, if it was.
    stop
        Set it to end after the wave under way.

    Raises
    ------
    InputError
        With the argument that cannot be used, or if the plan cannot begin in this snapshot.
    """
    checked_arguments(snapshot, None, None, None)
    document = plan.plan if isinstance(plan, Planned) else plan
    if not isinstance(document, Plan):
        raise _mistaken("plan", plan, "what plan returns, or a Plan")
    profile = document_profile(document.settings, config, snapshot)
    return replay_plan(document, snapshot, profile, steered=steered, runs=runs, seed=seed, stop=stop)


def validate(traces: str | Sequence[str], *, keep: int = 20, stop: Stop | None = None) -> Validation:
    """Repeat recorded decisions of a scheduler, and return every difference.

    Parameters
    ----------
    traces
        Files, folders, or patterns.
    keep
        Maximum number of differences to describe.
    stop
        Set it to end with what was compared so far.

    Raises
    ------
    InputError
        With the file or the line that cannot be used.
    """
    return validate_traces(trace_files(_names("traces", traces)), keep=keep, stop=stop)


def anonymize(snapshot: Snapshot) -> Snapshot:
    """Return a cluster with other names: of objects, images, labels, and addresses; quantities and structure stay.

    Parameters
    ----------
    snapshot
        The cluster.

    Raises
    ------
    InputError
        If the argument is no snapshot.
    """
    checked_arguments(snapshot, None, None, None)
    renamed = Pseudonyms(manifest_list(snapshot)).cluster()
    keys = {key for item in renamed["items"] for key in item["metadata"].get("annotations", {})}
    return load_bytes(written(renamed), "the anonymized cluster", annotations=keys)


def checked_arguments(
    snapshot: object,
    settings: object,
    options: object,
    backend: object,
    *,
    partial: bool = True,
) -> tuple[Settings, Options]:
    """Return settings and options, the defaults where none are given; refuse arguments that are something else.

    Raises
    ------
    InputError
        With the argument that is something else, or what the snapshot lacks unless it may be ``partial``.
    """
    if not isinstance(snapshot, Snapshot):
        raise _mistaken("snapshot", snapshot, "a Snapshot, as load returns")
    if not isinstance(settings, Settings | None):
        raise _mistaken("settings", settings, "a Settings")
    if not isinstance(options, Options | None):
        raise _mistaken("options", options, "an Options")
    if backend is not None and not callable(getattr(backend, "stream", None)):
        raise _mistaken("backend", backend, "a Backend, such as SerialBackend()")
    if not partial:
        require_whole(snapshot, "partial=True")
    return settings or Settings(), options or Options()


def _names(field: str, given: object) -> tuple[str, ...]:
    """Return one name or several as several."""
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else (None,)
    if not all(isinstance(name, str) for name in names):
        raise _mistaken(field, given, "a name, or a list of names")
    return names


def _assignments(snapshot: Snapshot, candidates: object) -> list[Assignment]:
    """Return assignments to start from, of pods and nodes that the snapshot has."""
    if isinstance(candidates, Mapping | str) or not isinstance(candidates, Iterable):
        raise _mistaken("candidates", candidates, "a list of assignments")
    pods = {pod.key for pod in snapshot.pods}
    found = []
    for i, candidate in enumerate(candidates):
        if not isinstance(candidate, Mapping):
            raise _mistaken(f"candidates[{i}]", candidate, "an Assignment, or node names by pod key")
        for key, node in candidate.items():
            if key not in pods or node not in snapshot.node_index:
                missing = f"node {node!r}" if key in pods else f"pod {key!r}"
                raise InputError(f"has {missing}, which is not in the snapshot", field=f"candidates[{i}]")
        found.append(Assignment(candidate))
    return found


def _mistaken(field: str, given: object, wanted: str) -> InputError:
    return InputError(f"is of type {type(given).__name__}; must be {wanted}", field=field)
