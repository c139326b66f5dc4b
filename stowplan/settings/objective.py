"""Objectives: presets by name, and files."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from stowplan.models.errors import InputError
from stowplan.models.input_bounds import read_bounded
from stowplan.models.objective import PRESETS, PRICED_PRESETS, Objective
from stowplan.models.settings import Settings
from stowplan.models.validation import refusal
from stowplan.models.yaml_input import parse_one_yaml


def chosen_objective(settings: Settings) -> Objective:
    """Return the objective that settings name, with their ``preemption`` applied.

    Raises
    ------
    InputError
        If no preset or file has that name.
    """
    objective = settings.objective
    if isinstance(objective, str):
        objective = read_objective(objective)
    if settings.preemption is not None:
        objective = objective.model_copy(update={"preemption": settings.preemption})
    return objective


def read_objective(name: str) -> Objective:
    """Return a preset by name, or read an objective from a file.

    Raises
    ------
    InputError
        If it is neither, with the field of the file that cannot be used.
    """
    presets = PRESETS | PRICED_PRESETS
    if name in presets:
        return presets[name]
    if not Path(name).is_file():
        raise InputError(f"{name!r} is neither a preset ({', '.join(presets)}) nor a file", field="--objective")
    try:
        with open(name, "rb") as file:
            content = parse_one_yaml(read_bounded(file, name), name, "not YAML")
        if not isinstance(content, dict):
            raise InputError("must be an object with tiers", file=name)
        return Objective.model_validate(content)
    except OSError as error:
        raise InputError(f"cannot be read: {error}", file=name) from None
    except ValidationError as error:
        raise refusal(error, name) from None
