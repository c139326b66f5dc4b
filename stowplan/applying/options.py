"""How carefully and how patiently a plan is carried out; how a run ends early."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from stowplan.applying.lease import ClusterLease
from stowplan.models.command_line import CLUSTER, Option
from stowplan.models.errors import StowplanError
from stowplan.models.moments import require_time
from stowplan.models.plan import Plan
from stowplan.models.stop import Stop

RULES = "Stop rules"
"""Heading of the options that say when a run stops."""


@dataclass(frozen=True)
class ApplyOptions:
    """Limits on a run.

    Parameters
    ----------
    timeout
        Seconds that each wave may take; what the plan says of its barrier if not given.
    pending
        Seconds that a replacement may be missing or unscheduled.
    elsewhere
        Maximum number of replacements on another node than planned.
    skip_unready
        Maximum number of replacements, in the whole plan, that are not waited for any longer although they are not
        ready.
    unready_limit
        Seconds on its node after which a replacement is one of them.
    await_unready
        Whether replacements of pods that were not ready when their wave began must be ready.
    stop_after
        Number of the wave after which to stop.
    poll
        Seconds between two checks of the cluster.
    serve
        Where ``stowplan serve`` is told which wave begins, if it is to be.
    lease, lease_namespace
        Whether a Lease keeps other runs in the cluster away, and the namespace that it is in.
    events
        Whether moves are told as Events of their pods.
    lease_seconds
        Seconds for which the Lease is held without being renewed.
    tls
        How the connection to it is secured, if not as connections usually are.
    pause_scale
        Factor on the pauses between two attempts at one pod, and between two times that it is said what is waited for;
        and on how long a pod that a server held may have no node.
    awaits_evicted
        Whether a wave whose pods came up elsewhere evicts no more, and waits for what is under way, before the run
        stops, so that the rest can be made anew from replacements that are ready.
    """

    timeout: Annotated[
        float | None,
        Field(ge=0.1),
        Option("Maximum seconds for each wave. Default: as the plan says.", RULES, show_default=False),
    ] = None
    pending: Annotated[
        float,
        Field(ge=0.0),
        Option("Maximum seconds that a replacement may be unscheduled, or missing.", RULES, flags=("--pending-limit",)),
    ] = 120.0
    elsewhere: Annotated[
        int,
        Field(ge=0),
        Option("Maximum number of replacements on another node than planned.", RULES, flags=("--allow-elsewhere",)),
    ] = 0
    skip_unready: Annotated[
        int,
        Field(ge=0),
        Option("Maximum number of replacements to go on without although they are not ready.", RULES),
    ] = 0
    unready_limit: Annotated[
        float,
        Field(ge=0.0),
        Option("Seconds that each of them has to become ready.", RULES),
    ] = 120.0
    await_unready: Annotated[
        bool,
        Option("Wait until replacements of pods that were not ready before are ready.", RULES),
    ] = False
    stop_after: Annotated[
        int | None,
        Field(ge=1),
        Option("Stop when this wave is over.", RULES, flags=("--stop-after-wave",), show_default=False),
    ] = None
    poll: Annotated[float, Field(ge=0.01), Option("Seconds between two checks of the cluster.", CLUSTER)] = 2.0
    serve: Annotated[
        str | None,
        Option(
            "URL of stowplan serve, to tell it which wave begins, such as http://127.0.0.1:8888/v1.",
            None,
            metavar="URL",
            show_default=False,
        ),
    ] = None
    lease: Annotated[
        bool,
        Option("Run although another run may be under way in the cluster.", CLUSTER, ("--no-lease",), negated=True),
    ] = True
    lease_namespace: Annotated[
        str,
        Option("Namespace of the Lease that keeps other runs in the cluster away.", CLUSTER, metavar="NAMESPACE"),
    ] = "kube-system"
    events: Annotated[bool, Option("Write no Events about the moves.", CLUSTER, ("--no-events",), negated=True)] = True
    lease_seconds: float = 30.0
    tls: ssl.SSLContext | None = None
    pause_scale: float = 1.0
    awaits_evicted: bool = False


@dataclass
class Halt(StowplanError):
    """A rule says to stop: in one line, what was seen."""

    why: str

    def __str__(self) -> str:
        return self.why


class Obsolete(Halt):
    """The rest of the plan does not fit the cluster that was seen."""


class Expired(Halt):
    """The plan has expired."""


class Interrupted(Halt):
    """A stop was requested."""


@dataclass(frozen=True)
class Guard:
    """Says whether a run may go on.

    Parameters
    ----------
    lease
        What keeps other runs in the cluster away, if anything does.
    """

    plan: Plan
    stop: Stop
    lease: ClusterLease | None = None

    @property
    def expired(self) -> str:
        """What is to be said of a plan that has expired; empty if it has not."""
        late = datetime.now(UTC) >= require_time(self.plan.expires_at, "expiresAt")
        return f"the plan expired at {self.plan.expires_at}; make a new one" if late else ""

    def may_go_on(self) -> None:
        """Raise if a stop was requested, or the lease is lost."""
        if self.stop.is_set():
            raise Interrupted("interrupted")
        if self.lease is not None and self.lease.lost:
            raise Halt(self.lease.lost)

    def may_begin(self) -> None:
        """Raise if nothing new may be begun."""
        self.may_go_on()
        if self.expired:
            raise Expired(self.expired)

    def rest(self, seconds: float) -> None:
        """Sleep, but end at once if a stop is requested."""
        self.stop.wait(seconds)
