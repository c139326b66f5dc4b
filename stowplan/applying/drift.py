"""Whether a live cluster still looks as the rest of a plan expects."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.applying.ledger import ApplyLedger
from stowplan.applying.observations import ClusterView
from stowplan.models.kubernetes.taints import tolerated
from stowplan.models.plan import MoveDocument, Plan
from stowplan.plans.budgets import is_stale
from stowplan.plans.cordons import CORDONED
from stowplan.plans.creations import is_to_be_created
from stowplan.plans.preconditions import node_problem, pod_problems
from stowplan.plans.replacements import group_of_move, group_of_pod


def drift(plan: Plan, ledger: ApplyLedger, view: ClusterView, wave: int) -> list[str]:
    """Return what no longer holds for the moves from a wave on, one line each; budgets for that wave alone.

    Checked are, of each pod that is still to be moved, the preconditions of `stowplan.plans.preconditions`; that its
    target is there, ready, and not cordoned otherwise, unless the pod tolerates that; and that the status of the wave's
    budgets is up to date. Of a pending pod that has a node by now, it is decided elsewhere whether it may stay there.
    """
    problems: list[str] = []
    targets: set[str] = set()
    to_be_open: set[str] = set()
    tolerant = {group_of_pod(pod) for pod in view.pods.values() if tolerated(CORDONED, pod.spec.tolerations)}
    pending = ledger.pending(view.identities)
    for number, move in ((w.number, m) for w in plan.waves if w.number >= wave for m in w.moves):
        if ledger.stage(move) in {"waiting", "asked"}:
            if move.kind == "place":
                problems += _pending_pod(move, ledger, view, pending.get(move.id), number in ledger.known)
            elif ledger.progress[move.id].intent is None:
                problems += _pod(move, ledger, view)
            if number == wave:
                problems += _budgets(move, view)
        if move.target is not None and not ledger.settled(move):
            targets.add(move.target)
            if group_of_move(move) not in tolerant:
                to_be_open.add(move.target)
    to_be_open -= {node for _, node in ledger.closed}
    problems += [problem for target in sorted(targets) for problem in _node(target, view, target in to_be_open)]
    return list(dict.fromkeys(problems))


def _pod(move: MoveDocument, ledger: ApplyLedger, view: ClusterView) -> Iterator[str]:
    if move.follows is not None and ledger.parked(move) is None:
        return  # it is still to be parked, and is checked when it was
    key = f"{move.pod.namespace}/{ledger.name(move)}"
    pod = view.pods.get(key)
    problems = ["is gone"] if pod is None else pod_problems(move, pod, ledger.uid(move))
    yield from (f"pod {key} {problem}" for problem in problems)


def _pending_pod(
    move: MoveDocument, ledger: ApplyLedger, view: ClusterView, key: str | None, is_begun: bool
) -> Iterator[str]:
    """Say what keeps a pending pod, or the one that waits in its stead, from getting its node."""
    own = move.pod.key
    if key is None and ledger.is_taken_over(move):
        if not is_begun:  # a wave that is under way waits for the replacement itself
            yield f"pod {own} took the place of an evicted one, whose replacement is not there"
        return
    pod = view.pods.get(key or own)
    if pod is None and is_to_be_created(move):
        return  # its wave says when, and waits for it
    uid = None if pod is None or key in (None, own) else pod.metadata.uid
    problems = ["is gone"] if pod is None else pod_problems(move, pod, uid, anywhere=True)
    yield from (f"pod {key or own} {problem}" for problem in problems)


def _node(name: str, view: ClusterView, to_be_open: bool) -> Iterator[str]:
    node = view.nodes.get(name)
    if problem := node_problem(name, node):
        yield problem
    if node is not None and node.unschedulable and to_be_open:
        yield f"node {name} is cordoned"


def _budgets(move: MoveDocument, view: ClusterView) -> Iterator[str]:
    for name in move.budgets:
        key = f"{move.pod.namespace}/{name}"
        budget = view.budgets.get(key)
        if budget is None:
            yield f"PodDisruptionBudget {key} is gone"
        elif is_stale(budget):
            yield f"PodDisruptionBudget {key}: its status is older than its spec (is the controller up?)"
