"""Parameters of all algorithms, and how they are read from a file."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self, TypeVar, get_args, get_origin, get_type_hints

from stowplan.models.errors import InputError
from stowplan.models.options import Options
from stowplan.optimizer.annealing.parameters import AnnealingParameters
from stowplan.optimizer.bounds.parameters import BoundParameters
from stowplan.optimizer.closing.parameters import ClosingParameters
from stowplan.optimizer.column_generation.parameters import ColumnGenerationParameters
from stowplan.optimizer.constructive.parameters import ConstructiveParameters
from stowplan.optimizer.cpsat.parameters import CpSatParameters
from stowplan.optimizer.final_state.parameters import FinalStateParameters
from stowplan.optimizer.lns.parameters import LnsParameters
from stowplan.optimizer.node_changes.parameters import NodeChangeParameters
from stowplan.optimizer.parts.parameters import PartParameters
from stowplan.optimizer.rearrangement.parameters import RearrangementParameters
from stowplan.optimizer.reconfiguration.parameters import ReconfigurationParameters
from stowplan.optimizer.regions.parameters import RegionParameters
from stowplan.optimizer.transfers.parameters import TransferParameters

D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class PortfolioParameters:
    """Who works when, and for how long. *Shares* are of the time that is left.

    Parameters
    ----------
    largest_curved_model
        (class, node) variables above which CP-SAT gets little time for tiers with curves of loads, whose values are too
        close together for a proof.
    bytes_per_variable
        Memory that CP-SAT needs for a variable, all workers together, in bytes.
    bytes_per_process
        Memory that a process for LNS holds before it has done much, in bytes.
    pool_worth
        Seconds of LNS from which on processes of its own, which take seconds to start, are worth it.
    counting_share
        Share of annealing where nothing counts but tiers that column generation knows best.
    leading_share
        Share of each engine for such tiers where others follow.
    room_share
        Share of walks that make room for unscheduled pods, for each tier that counts some.
    limited_room_share
        Share of CP-SAT after that where moves are limited, on the whole or on parts of it, for the first tier; half of
        it for the second, and so on.
    largest_room_model
        (class, node) variables above which CP-SAT then gets a part of the nodes at a time.
    column_share
        Share of column generation where nothing counts but tiers that it knows best.
    closed_column_share
        Share of column generation where nodes were closed before.
    exact_annealing_share, annealing_share
        Share of the first annealing, where CP-SAT gets whole tiers, and where it does not.
    later_column_share
        Share of column generation for tiers that follow others.
    bound_share, last_bound_share
        Share of the bounds of a tier, and the most for the last open tier.
    little
        Share of the last open tier's value: where its bound is below, it is raised before tiers above are proven.
    bound_beside_parts
        The most that bounds get before workers in a cluster solve exact parts.
    bound_worth
        Seconds that the bounds of the last open tier get, within these shares.
    repair_share
        Share of annealing after an engine that improves one tier at the cost of later ones.
    curved_cpsat_share, cpsat_share, large_cpsat_share
        Part of a tier's share of the time that CP-SAT gets: above `largest_curved_model` variables in tiers with
        curves, up to half of `Options.largest_model`, and above that.
    turns
        Shares of the turns that annealing and LNS take in the end; long ones gain most.
    most_failed
        Turns in a row without gain after which the solve ends.
    """

    largest_curved_model: int = 2_000
    bytes_per_variable: int = 6_000
    bytes_per_process: int = 120 << 20
    pool_worth: float = 8.0
    counting_share: float = 0.12
    leading_share: float = 0.06
    room_share: float = 0.2
    limited_room_share: float = 0.3
    largest_room_model: int = 4_000
    column_share: float = 0.8
    closed_column_share: float = 0.3
    exact_annealing_share: float = 0.35
    annealing_share: float = 0.55
    later_column_share: float = 0.6
    bound_share: float = 0.3
    last_bound_share: float = 0.6
    little: float = 0.5
    bound_beside_parts: float = 0.1
    bound_worth: float = 3.0
    repair_share: float = 0.15
    curved_cpsat_share: float = 0.2
    cpsat_share: float = 0.9
    large_cpsat_share: float = 0.3
    turns: tuple[float, ...] = (0.4, 0.3, 0.5, 0.5, 1.0)
    most_failed: int = 3


@dataclass(frozen=True, slots=True)
class MoveLimitParameters:
    """How the time is divided where one problem is solved under several limits on moves.

    Parameters
    ----------
    pool_worth
        Seconds from which on processes of their own, which serve all solves, are worth their start.
    first_tiers_share
        Share of the time for the fewest moves that improve violations and unplaced pods.
    few_tiers_share
        Part of the first share for the moves that each of these tiers alone takes.
    constructive_share
        Share of the time left that constructive heuristics may take for each limit.
    annealing_share
        Share of the time left for annealing, one limit after the other.
    turn_share, least_turn
        Share of the time left of each turn, and the least seconds or units of work of one.
    variables_per_second
        (class, node) variables for each second of a turn up to which the exact model is tried.
    unlimited_weight
        How much longer a turn is where moves are not limited.
    no_moves_promise
        Factor by which it counts less what a limit of 0 moves may gain, where pods can only be placed.
    searched_factor
        Factor by which a gap of a tier that was searched before all limits counts less, once more with each turn.
    most_turns
        Turns in a row without gain after which a limit gets no more.
    """

    pool_worth: float = 20.0
    first_tiers_share: float = 0.2
    few_tiers_share: float = 0.2
    constructive_share: float = 0.05
    annealing_share: float = 0.15
    turn_share: float = 0.12
    least_turn: float = 1.5
    variables_per_second: float = 800.0
    unlimited_weight: float = 2.0
    no_moves_promise: float = 0.1
    searched_factor: float = 0.3
    most_turns: int = 4


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of all algorithms, component by component. The defaults are tuned together."""

    annealing: AnnealingParameters = field(default_factory=AnnealingParameters)
    lns: LnsParameters = field(default_factory=LnsParameters)
    bounds: BoundParameters = field(default_factory=BoundParameters)
    column_generation: ColumnGenerationParameters = field(default_factory=ColumnGenerationParameters)
    constructive: ConstructiveParameters = field(default_factory=ConstructiveParameters)
    cpsat: CpSatParameters = field(default_factory=CpSatParameters)
    final_state: FinalStateParameters = field(default_factory=FinalStateParameters)
    node_changes: NodeChangeParameters = field(default_factory=NodeChangeParameters)
    closing: ClosingParameters = field(default_factory=ClosingParameters)
    transfers: TransferParameters = field(default_factory=TransferParameters)
    rearrangement: RearrangementParameters = field(default_factory=RearrangementParameters)
    reconfiguration: ReconfigurationParameters = field(default_factory=ReconfigurationParameters)
    parts: PartParameters = field(default_factory=PartParameters)
    regions: RegionParameters = field(default_factory=RegionParameters)
    portfolio: PortfolioParameters = field(default_factory=PortfolioParameters)
    move_limits: MoveLimitParameters = field(default_factory=MoveLimitParameters)

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """Read parameters from a TOML file: a table for each component; what is not given keeps its default.

        Raises
        ------
        InputError
            If the file cannot be read or is not TOML, or a key is unknown, or a value has the wrong type.
        """
        file = str(path)
        try:
            document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", file) from error
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InputError(f"is not TOML: {error}", file) from error
        try:
            return cls.of(document)
        except InputError as error:
            raise error.in_file(file) from error

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Return parameters of which some are given, by component and name.

        Raises
        ------
        InputError
            If a component or a name is unknown, or a value has the wrong type.
        """
        made = cls()
        for component, given in document.items():
            if component not in {part.name for part in fields(cls)}:
                names = ", ".join(part.name for part in fields(cls))
                raise InputError(f"is an unknown component; must be one of {names}", field=component)
            if not isinstance(given, Mapping):
                raise InputError(f"is {given!r}; must be a table of parameters", field=component)
            made = replace(made, **{component: _changed(getattr(made, component), given, component)})
        return made


def parameters_of(options: Options) -> Parameters:
    """Return the parameters that options name, or the defaults.

    Raises
    ------
    InputError
        If they are something else.
    """
    if options.parameters is None:
        return Parameters()
    if not isinstance(options.parameters, Parameters):
        raise InputError("must be a Parameters of stowplan.optimizer.parameters", field="parameters")
    return options.parameters


def _changed(component: D, given: Mapping[str, Any], name: str) -> D:
    """Return the parameters of one component with other values."""
    types = get_type_hints(type(component))
    values = {}
    for key, value in given.items():
        if key not in types:
            raise InputError(f"is an unknown parameter; must be one of {', '.join(types)}", field=f"{name}.{key}")
        values[key] = _value(value, types[key], f"{name}.{key}")
    return replace(component, **values)  # type: ignore[type-var]


def _value(value: object, wanted: Any, path: str) -> object:
    """Return a value from TOML as the type of a parameter."""
    parts = get_args(wanted)
    if type(None) in parts:
        wanted = next(part for part in parts if part is not type(None))
        parts = get_args(wanted)
    if get_origin(wanted) is tuple:
        count = None if parts[-1] is Ellipsis else len(parts)
        words = "numbers" if count is None else f"{count} numbers"
        if not isinstance(value, list) or not value or (count is not None and len(value) != count):
            raise InputError(f"is {value!r}; must be a list of {words}", field=path)
        return tuple(_value(entry, parts[0], f"{path}[{i}]") for i, entry in enumerate(value))
    # A TOML Boolean is an integer for Python, but not for a reader.
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if wanted is int and not (number and isinstance(value, int)):
        raise InputError(f"is {value!r}; must be an integer", field=path)
    if wanted is float and not number:
        raise InputError(f"is {value!r}; must be a number", field=path)
    if isinstance(value, int | float) and value <= 0:
        raise InputError(f"is {value!r}; must be above 0", field=path)
    return wanted(value)
