"""How a problem is solved: argument of the Python interface and options of the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from stowplan.models.command_line import SEARCH, Option
from stowplan.models.errors import InputError
from stowplan.models.quantity import parse_quantity
from stowplan.models.validation import check_fields

LARGEST_MODEL = 20_000
"""(class, node) variables up to which the exact model is built; beyond, it would spend its time in presolve."""

MANY_WORKERS = 8
"""Threads of CP-SAT, each with its own strategy; more threads than processors still help."""

LEAST_TIME = 0.1
"""The least time limit that a solve takes, in seconds."""

LOCAL, RAY = "local", "ray"
"""Where sub-problems are worked on: in processes of this machine, or in a Ray cluster."""

_BACKEND = re.compile(r"local|ray(:auto|:[^\s:/]+:\d{1,5}|:\[[0-9a-fA-F:]+\]:\d{1,5})?")

LEAST_MEMORY = 256 * 2**20
"""Bytes; the solver libraries alone need about as much."""


def read_memory(word: str) -> int:
    """Return the bytes of a quantity such as ``2Gi``.

    Raises
    ------
    ValueError
        If it is no quantity, or nothing is left to work in.
    """
    try:
        amount = parse_quantity(word) // parse_quantity("1")
    except ValueError:
        amount = 0
    if amount < LEAST_MEMORY:
        raise ValueError(f"is {word!r}; must be a quantity of at least 256Mi, such as 2Gi")
    return amount


@dataclass(frozen=True, slots=True)
class Options:
    """How to solve.

    Parameters
    ----------
    time_limit
        Seconds. In deterministic mode, units of work that take from half a second to several seconds each.
    deterministic
        Give the same answer for the same input and seed on any machine.
    seed
        Seed of all random numbers, 0 to 2^31 - 1.
    workers
        Threads of CP-SAT.
    largest_model
        (class, node) variables up to which the exact model is tried.
    memory
        Maximum memory in bytes; by default 80% of the memory that is free at the start.
    processes
        Number of processes that solve neighborhoods; by default the number of cores, at least 2.
    gap
        How far each tier's value may be above its bound, as a share of the value, for the solve to end.
    kernels
        Whether to use compiled kernels. Without them, nothing has to be compiled; annealing, column generation, and
        the Lagrangian bound are left out, and constructive heuristics, CP-SAT, and large neighborhood search remain.
    backend
        Where sub-problems are worked on: ``local``, or ``ray:HOST:PORT``, a Ray cluster; ``ray`` alone is that of
        ``RAY_ADDRESS``, or one that is begun on this machine. ``processes`` is then the maximum number of its workers.
    checkpoint
        File that always holds the best answer so far; if it is there already, the search begins with what it holds.
    parameters
        Parameters of the algorithms, a `stowplan.optimizer.parameters.Parameters`; the defaults if not given.

    Raises
    ------
    InputError
        With the option that cannot be used.
    """

    time_limit: Annotated[
        float,
        Field(ge=LEAST_TIME, allow_inf_nan=False),
        Option(
            "Seconds for search and proof; reading, simulating kube-scheduler, and checking take additional time.",
            SEARCH,
            flags=("--time-limit", "-t"),
        ),
    ] = 20.0
    deterministic: Annotated[
        bool,
        Option(
            "Same answer for the same input and seed, on any machine; the time limit counts work, not seconds.", SEARCH
        ),
    ] = False
    seed: Annotated[int, Field(ge=0, le=2**31 - 1), Option("Seed of all random numbers.", SEARCH)] = 0
    workers: Annotated[int, Field(ge=1), Option("Number of solver threads.", SEARCH)] = MANY_WORKERS
    largest_model: Annotated[int, Field(ge=0)] = LARGEST_MODEL
    memory: Annotated[
        int | None,
        Field(ge=LEAST_MEMORY),
        Option(
            "Maximum memory, such as 2Gi. Default: 80% of the free memory.",
            SEARCH,
            metavar="QUANTITY",
            show_default=False,
            read=read_memory,
        ),
    ] = None
    processes: Annotated[int | None, Field(ge=0)] = None
    gap: Annotated[
        float,
        Field(ge=0.0, le=0.99),
        Option("Stop when the relative optimality gap of every tier is at most this (0.01 = 1%).", SEARCH),
    ] = 0.0
    backend: Annotated[
        str,
        Option(
            "Where sub-problems are solved: local, or ray[:HOST:PORT], a Ray cluster (needs stowplan[ray]).",
            SEARCH,
            words=(LOCAL, RAY),
        ),
    ] = LOCAL
    checkpoint: Annotated[
        str | None,
        Option(
            "Keep the best answer so far in this file, and begin with what it holds.",
            SEARCH,
            metavar="FILE",
            show_default=False,
        ),
    ] = None
    kernels: bool = True
    parameters: object = None

    def __post_init__(self) -> None:
        check_fields(self)
        if not _BACKEND.fullmatch(self.backend):
            raise InputError(f"is {self.backend!r}; must be local, ray, or ray:HOST:PORT", field="backend")

    @property
    def alone(self) -> Options:
        """The same for a job on one processor of another machine, which keeps no checkpoint."""
        return replace(self, backend=LOCAL, workers=1, processes=1, checkpoint=None)
