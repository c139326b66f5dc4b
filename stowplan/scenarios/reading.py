"""Reads scenario files, and puts them together with what the command line says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from stowplan.models.errors import InputError
from stowplan.models.validation import refusal
from stowplan.models.yaml_input import read_yaml
from stowplan.scenarios.scenario import Scenario, ScenarioDocument

FILES = ("requests", "headroom_from")
"""Fields that name files, which are looked for beside the scenario."""


def read_scenario(path: str) -> Scenario:
    """Read a scenario from YAML or JSON.

    Raises
    ------
    InputError
        With the field that cannot be used.
    """
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise InputError("must be an object with kind: Scenario", file=path)
    try:
        read = ScenarioDocument.model_validate(content)
    except ValidationError as error:
        raise refusal(error, path) from None
    values: dict[str, Any] = {name: getattr(read, name) for name in Scenario.model_fields}
    beside = {name: tuple(str(Path(path).parent / file) for file in values[name]) for name in FILES}
    scenario = Scenario(**(values | beside))
    if scenario.is_empty:
        raise InputError("changes nothing; must have at least one change, such as removeNodes", file=path)
    return scenario


def joined(first: Scenario, second: Scenario) -> Scenario:
    """Return a scenario with the changes of both."""
    values: dict[str, Any] = {}
    for name in Scenario.model_fields:
        one, other = getattr(first, name), getattr(second, name)
        values[name] = {**one, **other} if isinstance(one, dict) else one or other if name == "name" else (*one, *other)
    return Scenario(**values)
