"""Scenarios: what is to be different, as the command line and scenario files say it.

A kind of change is one field here. What it does to a snapshot is said in the other modules of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from stowplan.models.arguments import Arguments
from stowplan.models.command_line import Option
from stowplan.models.document import API_VERSION, Document
from stowplan.models.objective import Weight
from stowplan.scenarios.changes import (
    RULES,
    AddedNodes,
    DroppedRule,
    MaxSkew,
    Nodes,
    PodsAndNodes,
    ResizedNodes,
    Room,
    given_or_none,
    read_added,
    read_dropped,
    read_pods_and_nodes,
    read_resized,
    read_rooms,
    read_skews,
    read_weights,
)

SCENARIO = "Scenario"
"""Heading of the options in the help of a command."""


class Scenario(Arguments):
    """What is to be different. The changes apply in the order of the fields.

    Parameters
    ----------
    add_nodes, remove_nodes, resize_nodes, uncordon
        Nodes that come, go with their DaemonSet and static pods, have other sizes, or take pods again. The other pods
        of nodes that go become pending.
    drop_rules, max_skew
        Rules that pods no longer have, and spread constraints that allow another skew.
    requests
        Files with recommended requests: of krr, VerticalPodAutoscalers, or Goldilocks.
    pin, forbid
        Nodes that pods must be on, or must not be on.
    headroom, headroom_from
        Room that shall be left for more pods; files with CapacityBuffers or HorizontalPodAutoscalers that ask for it.
    weights
        Weights of the objective, by ``TIER.TERM`` or ``TIER.TERM.KEY``.
    name
        What the scenario is called.

    Raises
    ------
    InputError
        With the field that cannot be used.
    """

    add_nodes: Annotated[
        tuple[AddedNodes, ...],
        Option(
            "Add nodes like one that is there, with its DaemonSet and static pods; labels may differ: "
            "worker-1:2,zone=b; repeatable.",
            SCENARIO,
            metavar="NODE[:N][,KEY=VALUE]",
            read=read_added,
            several=True,
        ),
    ] = ()
    remove_nodes: Annotated[
        tuple[Nodes, ...],
        Option(
            "Remove nodes: by name or label selector, such as zone=a for a zone that is lost; repeatable.",
            SCENARIO,
            metavar="NODES",
        ),
    ] = ()
    resize_nodes: Annotated[
        tuple[ResizedNodes, ...],
        Option(
            "Give nodes other allocatable amounts: pool=b:cpu=16,memory=64Gi; repeatable.",
            SCENARIO,
            metavar="NODES:RESOURCE=AMOUNT",
            read=read_resized,
            several=True,
        ),
    ] = ()
    uncordon: Annotated[
        tuple[Nodes, ...], Option("Uncordon nodes; repeatable.", SCENARIO, flags=("--uncordon",), metavar="NODES")
    ] = ()
    drop_rules: Annotated[
        tuple[DroppedRule, ...],
        Option(
            f"Drop a rule of all pods, or of some: {', '.join(RULES)}; repeatable.",
            SCENARIO,
            flags=("--drop-rule",),
            metavar="RULE[:PODS]",
            read=read_dropped,
            several=True,
            words=RULES,
        ),
    ] = ()
    max_skew: Annotated[
        tuple[MaxSkew, ...],
        Option(
            "Set maxSkew of the hard spread constraints of all pods, or of some; repeatable.",
            SCENARIO,
            metavar="[PODS:]N",
            read=read_skews,
            several=True,
        ),
    ] = ()
    requests: Annotated[
        tuple[str, ...],
        Option(
            "Requests from recommendations: JSON or YAML of krr, VerticalPodAutoscalers, or Goldilocks; repeatable.",
            SCENARIO,
            metavar="FILE",
        ),
    ] = ()
    pin: Annotated[
        tuple[PodsAndNodes, ...],
        Option(
            "Pods that must be on some nodes: workload=shop/web@zone=a; repeatable.",
            SCENARIO,
            metavar="PODS@NODES",
            read=read_pods_and_nodes,
            several=True,
        ),
    ] = ()
    forbid: Annotated[
        tuple[PodsAndNodes, ...],
        Option(
            "Pods that must not be on some nodes; repeatable.",
            SCENARIO,
            metavar="PODS@NODES",
            read=read_pods_and_nodes,
            several=True,
        ),
    ] = ()
    headroom: Annotated[
        tuple[Room, ...],
        Option(
            "Room for N more pods of a workload, or for N in each domain: payments/api:3@zone; repeatable.",
            SCENARIO,
            metavar="NAMESPACE/NAME:N[@KEY]",
            read=read_rooms,
            several=True,
        ),
    ] = ()
    headroom_from: Annotated[
        tuple[str, ...],
        Option(
            "Room that CapacityBuffers ask for, and up to the maxima of HorizontalPodAutoscalers; repeatable.",
            SCENARIO,
            metavar="FILE",
        ),
    ] = ()
    weights: Annotated[
        dict[str, Weight],
        BeforeValidator(given_or_none),
        Option(
            "Set a weight of the objective: imbalance.moves=5, imbalance.variance.cpu=2; repeatable.",
            SCENARIO,
            flags=("--weight",),
            metavar="TIER.TERM=WEIGHT",
            read=read_weights,
            several=True,
        ),
    ] = Field(default_factory=dict)
    name: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be different."""
        return not any(value for field, value in self if field != "name")


def flag_of(field: str | None) -> str | None:
    """Return the option of a field of scenarios; anything else as it is."""
    notes = Scenario.model_fields[field].metadata if field in Scenario.model_fields else ()
    return next((note.flag(str(field)) for note in notes if isinstance(note, Option)), field)


class ScenarioDocument(Scenario):
    """A scenario as a file holds it."""

    model_config = ConfigDict(loc_by_alias=True)

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Scenario"] = "Scenario"

    if not TYPE_CHECKING:
        # Readers of documents report the place of a wrong value themselves; see `Arguments.__init__`.
        __init__ = Document.__init__

    @model_validator(mode="before")
    @classmethod
    def _says_what_it_is(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("kind") != "Scenario":
            raise ValueError("has no kind: Scenario, so it is no scenario")
        return data
