"""Whether a live cluster still looks as the rest of a plan expects."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.applying.ledger import Ledger
from stowplan.applying.observations import Seen, View
from stowplan.models.plan import MoveDocument, Plan


def drift(plan: Plan, ledger: Ledger, view: View, wave: int) -> list[str]:
    """Return what no longer holds for the moves from a wave on, one line each; budgets for that wave alone.

    Checked are, of each pod that is still to be moved: that it is there with the same uid, on the same node, not
    leaving and not over, of the same owner and template; that its target is there, open and ready; and that the
    status of the wave's budgets is up to date.
    """
    problems: list[str] = []
    targets: set[str] = set()
    for number, move in ((w.number, m) for w in plan.waves if w.number >= wave for m in w.moves):
        if ledger.stage(move) in {"waiting", "asked"}:
            if ledger.progress[move.id].intent is None:
                problems += _pod(move, ledger, view)
            if number == wave:
                problems += _budgets(move, view)
        if move.target is not None and not ledger.settled(move):
            targets.add(move.target)
    ours = {node for _, node in ledger.closed}
    problems += [problem for target in sorted(targets) for problem in _node(target, view, target in ours)]
    return list(dict.fromkeys(problems))


def _pod(move: MoveDocument, ledger: Ledger, view: View) -> Iterator[str]:
    if move.follows is not None and ledger.parked(move) is None:
        return  # it is still to be parked, and is checked when it was
    key = f"{move.pod.namespace}/{ledger.name(move)}"
    pod, uid = view.pods.get(key), ledger.uid(move)
    if pod is None:
        yield f"pod {key} is gone"
    elif uid and pod.uid != uid:
        yield f"pod {key} is another one of the same name (uid {pod.uid}, planned with {uid})"
    elif pod.leaving:
        yield f"pod {key} is being deleted"
    elif pod.finished:
        yield f"pod {key} is over ({pod.status.phase})"
    elif pod.node != (move.source or "") and not (move.kind == "place" and pod.node == move.target):
        yield f"pod {key} is on {pod.node or 'no node'}, planned from {move.source or 'no node'}"
    elif move.owner is not None and move.owner.uid and pod.owner != move.owner.uid:
        yield f"pod {key} does not belong to {move.owner.kind} {move.owner.name} any more"
    elif move.template_hash and pod.template != move.template_hash:
        yield f"pod {key} is of template {pod.template or 'unknown'}, planned with {move.template_hash} (a rollout)"


def _node(name: str, view: View, ours: bool) -> Iterator[str]:
    node = view.nodes.get(name)
    if node is None:
        yield f"node {name} is gone"
    elif node.spec.unschedulable and not ours:
        yield f"node {name} is cordoned"
    elif any(c.type == "Ready" and c.status != "True" for c in node.status.conditions or ()):
        yield f"node {name} is not ready"


def _budgets(move: MoveDocument, view: View) -> Iterator[str]:
    for name in move.budgets:
        budget = view.budgets.get(f"{move.pod.namespace}/{name}")
        if budget is None:
            yield f"PodDisruptionBudget {move.pod.namespace}/{name} is gone"
        elif _stale(budget):
            yield f"PodDisruptionBudget {budget.key}: its status is older than its spec (is the controller up?)"


def _stale(budget: Seen) -> bool:
    return budget.status.observed_generation < budget.metadata.generation
