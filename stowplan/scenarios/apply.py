"""Applies scenarios: a snapshot and settings become others, and the given ones stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from stowplan.models.errors import InputError
from stowplan.models.quantity import parse_quantity
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.models.words import plural
from stowplan.plans.cordons import uncordon
from stowplan.scenarios.buffers import read_wishes
from stowplan.scenarios.changes import Rule
from stowplan.scenarios.headroom import Wish, pods_of, with_headroom
from stowplan.scenarios.nodes import add_nodes, remove_nodes, resize_nodes
from stowplan.scenarios.recommendations import read_recommendations
from stowplan.scenarios.requests import with_requests
from stowplan.scenarios.rules import (
    Requirements,
    drop_rule,
    off_nodes,
    off_selected,
    on_nodes,
    on_selected,
    pin,
    set_max_skew,
)
from stowplan.scenarios.scenario import Scenario
from stowplan.scenarios.selection import node_selector, nodes_of, of_pods, topology_key
from stowplan.scenarios.weights import with_weights
from stowplan.settings.objective import chosen_objective


@dataclass(frozen=True, slots=True)
class Changed:
    """What a scenario makes of a cluster and settings.

    Parameters
    ----------
    effects
        What each change came to, in words.
    """

    snapshot: Snapshot
    settings: Settings
    effects: Sequence[str]


def apply_scenario(scenario: Scenario, snapshot: Snapshot, settings: Settings | None = None) -> Changed:
    """Apply the changes of a scenario, in the order of its fields.

    Parameters
    ----------
    scenario
        What is different.
    snapshot, settings
        The cluster and the settings without it; neither is changed.

    Raises
    ------
    InputError
        With the change that names what the snapshot does not hold, that changes nothing, or whose file cannot be used.
    """
    settings = settings or Settings()
    effects: list[str] = []
    for field, change in _changes(scenario):
        try:
            after, effect = change(snapshot)
        except InputError as error:
            raise error if error.field or error.file else InputError(error.problem, None, error.obj, field) from None
        snapshot = after
        effects.append(effect)
    settings = _with_prices(scenario, snapshot, settings)
    if scenario.weights:
        objective = with_weights(chosen_objective(settings), scenario.weights)
        settings = settings.model_copy(update={"objective": objective})
        effects += [f"weight {path} is {weight:g}" for path, weight in scenario.weights.items()]
    if not snapshot.nodes:
        raise InputError("leaves no node", field="remove_nodes")
    snapshot.check_names()
    return Changed(snapshot, settings, effects)


_Change = Callable[[Snapshot], tuple[Snapshot, str]]


def _changes(scenario: Scenario) -> Iterator[tuple[str, _Change]]:
    """Yield each change of the snapshot, with the field that asks for it."""
    for added in scenario.add_nodes:
        yield "add_nodes", partial(_add, like=added.like, count=added.count, labels=added.labels)
    for nodes in scenario.remove_nodes:
        yield "remove_nodes", partial(_remove, nodes=nodes)
    for resized in scenario.resize_nodes:
        yield "resize_nodes", partial(_resize, nodes=resized.nodes, amounts=resized.allocatable)
    for nodes in scenario.uncordon:
        yield "uncordon", partial(_uncordon, nodes=nodes)
    for dropped in scenario.drop_rules:
        yield "drop_rules", partial(_drop, rule=dropped.rule, pods=dropped.pods)
    for skew in scenario.max_skew:
        yield "max_skew", partial(_set_skew, skew=skew.max_skew, pods=skew.pods, key=skew.topology_key)
    for file in scenario.requests:
        yield "requests", partial(_request, file=file)
    for pinned in scenario.pin:
        yield "pin", partial(_pin, pods=pinned.pods, nodes=pinned.nodes, away=False)
    for forbidden in scenario.forbid:
        yield "forbid", partial(_pin, pods=forbidden.pods, nodes=forbidden.nodes, away=True)
    for room in scenario.headroom:
        yield "headroom", partial(_keep_room, workload=room.workload, count=room.count, each=room.each)
    for file in scenario.headroom_from:
        yield "headroom_from", partial(_keep_room_of, file=file)


def _add(snapshot: Snapshot, like: str, count: int, labels: dict[str, str]) -> tuple[Snapshot, str]:
    model = nodes_of(snapshot, like)[0].name
    own = {topology_key(snapshot, key): value for key, value in labels.items()}
    after = add_nodes(snapshot, model, count, own)
    extra = len(after.pods) - len(snapshot.pods)
    told = "".join(f", {key}={value}" for key, value in own.items())
    return after, f"{plural(count, 'node')} like {model} added{told}, with {plural(extra, 'DaemonSet or static pod')}"


def _remove(snapshot: Snapshot, nodes: str) -> tuple[Snapshot, str]:
    gone = [node.name for node in nodes_of(snapshot, nodes)]
    after = remove_nodes(snapshot, gone)
    homeless = sum(not pod.node_name for pod in after.pods) - sum(not pod.node_name for pod in snapshot.pods)
    bare = sum(pod.node_name in gone and not pod.finished and pod.metadata.controller is None for pod in snapshot.pods)
    told = f" ({plural(bare, 'pod')} without a controller would not be created anew)" if bare else ""
    pods = f"{plural(homeless, 'pod')} of {'it' if len(gone) == 1 else 'them'} pending"
    return after, f"{plural(len(gone), 'node')} removed ({nodes}), {pods}{told}"


def _resize(snapshot: Snapshot, nodes: str, amounts: dict[str, str]) -> tuple[Snapshot, str]:
    names = [node.name for node in nodes_of(snapshot, nodes)]
    after = resize_nodes(snapshot, names, {name: parse_quantity(amount) for name, amount in amounts.items()})
    told = ", ".join(f"{name} {amount}" for name, amount in amounts.items())
    return after, f"{plural(len(names), 'node')} ({nodes}) with {told}"


def _uncordon(snapshot: Snapshot, nodes: str) -> tuple[Snapshot, str]:
    names = [node.name for node in nodes_of(snapshot, nodes) if node.unschedulable]
    if not names:
        raise InputError(f"{nodes!r} is not cordoned")
    return uncordon(snapshot, names), f"{plural(len(names), 'node')} uncordoned ({nodes})"


def _drop(snapshot: Snapshot, rule: Rule, pods: str | None) -> tuple[Snapshot, str]:
    after = drop_rule(snapshot, rule, of_pods(snapshot, pods))
    return after, f"{rule} dropped for {_touched(snapshot, after, f'rule {rule}')}"


def _set_skew(snapshot: Snapshot, skew: int, pods: str | None, key: str | None) -> tuple[Snapshot, str]:
    full = None if key is None else topology_key(snapshot, key)
    after = set_max_skew(snapshot, skew, of_pods(snapshot, pods), full)
    return (
        after,
        f"maxSkew {skew} for {_touched(snapshot, after, 'hard spread constraint with another maxSkew')}",
    )


def _request(snapshot: Snapshot, file: str) -> tuple[Snapshot, str]:
    recommendations = read_recommendations(file)
    after = with_requests(snapshot, recommendations)
    touched = sum(old is not new for old, new in zip(snapshot.pods, after.pods, strict=True))
    if not touched:
        raise InputError("recommends no other request for any pod of the snapshot", file=file)
    return after, f"requests of {plural(touched, 'pod')} from {file} ({plural(len(recommendations), 'recommendation')})"


def _pin(snapshot: Snapshot, pods: str, nodes: str, *, away: bool) -> tuple[Snapshot, str]:
    after = pin(snapshot, of_pods(snapshot, pods), _requirements(snapshot, nodes, away=away))
    touched = _touched(snapshot, after, "spec that this changes")
    return after, f"{touched} ({pods}) {'kept off' if away else 'pinned to'} {nodes}"


def _requirements(snapshot: Snapshot, nodes: str, *, away: bool) -> Requirements:
    found = nodes_of(snapshot, nodes)
    if nodes in snapshot.node_index:
        return (off_nodes if away else on_nodes)([node.name for node in found])
    return (off_selected if away else on_selected)(node_selector(snapshot, nodes))


def _keep_room(snapshot: Snapshot, workload: str, count: int, each: str | None) -> tuple[Snapshot, str]:
    namespace, _, name = workload.partition("/")
    after = with_headroom(snapshot, [Wish(name, pods_of(snapshot, namespace, name)[0], count, each)])
    return after, _room_words(snapshot, after, workload + (f" in each {each}" if each else ""))


def _keep_room_of(snapshot: Snapshot, file: str) -> tuple[Snapshot, str]:
    after = with_headroom(snapshot, read_wishes(file, snapshot))
    return after, _room_words(snapshot, after, f"what {file} asks for")


def _room_words(before: Snapshot, after: Snapshot, what: str) -> str:
    return f"{plural(len(after.pods) - len(before.pods), 'placeholder')} for {what}"


def _touched(before: Snapshot, after: Snapshot, what: str) -> str:
    """Return how many pods are different, in words.

    Raises
    ------
    InputError
        If none is: the change would be none.
    """
    count = sum(old is not new for old, new in zip(before.pods, after.pods, strict=True))
    if not count:
        raise InputError(f"changes nothing: none of the pods has a {what}")
    return plural(count, "pod")


def _with_prices(scenario: Scenario, snapshot: Snapshot, settings: Settings) -> Settings:
    """Return settings in which added nodes cost what those cost that they are like, where prices go by name."""
    if not isinstance(settings.prices, dict):
        return settings
    prices = dict(settings.prices)
    for added in scenario.add_nodes:
        for node in snapshot.nodes:
            if node.name.startswith(f"{added.like}-new-") and added.like in prices:
                prices.setdefault(node.name, prices[added.like])
    return settings.model_copy(update={"prices": {n.name: prices[n.name] for n in snapshot.nodes if n.name in prices}})
