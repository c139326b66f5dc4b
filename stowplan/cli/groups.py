"""Options that commands share in groups: one dataclass in Python, single options on the command line."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from inspect import Parameter
from typing import Annotated, Any, get_args, get_origin, get_type_hints


@dataclass(frozen=True, slots=True)
class But:
    """How a group is different in one command.

    Parameters
    ----------
    without
        Fields that are no options there.
    defaults
        Other defaults, by field; one may be of a field that is no option.
    """

    without: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)


def but(*without: str, **defaults: Any) -> But:
    """Leave fields of a group out, and change defaults; stands in the ``Annotated`` of a parameter."""
    return But(without, defaults)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes its groups field by field, each in the place of its group.

    A parameter is a group if its type is a dataclass. The fields of one are annotated as parameters of commands are,
    and have defaults.

    Raises
    ------
    TypeError
        If a group is to be different in a field that it does not have.
    """
    parameters: list[Parameter] = []
    groups: list[tuple[str, Callable[..., object], Mapping[str, Any], list[str]]] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        group, difference = _group(parameter.annotation)
        if group is None:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
        else:
            options = _options(group, difference)
            parameters += options
            groups.append((parameter.name, group, difference.defaults, [option.name for option in options]))

    @functools.wraps(command)
    def ungrouped(**given: Any) -> None:
        for name, group, defaults, options in groups:
            chosen = {option: given.pop(option) for option in options}
            given[name] = group(**{**defaults, **chosen})
        command(**given)

    # Typer reads both.
    ungrouped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    ungrouped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return ungrouped


def _group(annotation: Any) -> tuple[type | None, But]:
    """Return the dataclass that a parameter is annotated with, if any, and how it is different here."""
    base, *notes = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    difference = next((note for note in notes if isinstance(note, But)), But())
    return (base if isinstance(base, type) and is_dataclass(base) else None), difference


def _options(group: type, difference: But) -> list[Parameter]:
    """Return the fields of a group as parameters."""
    defaults = {field.name: field.default for field in fields(group)}
    if unknown := {*difference.without, *difference.defaults} - defaults.keys():
        raise TypeError(f"{group.__name__} has no {', '.join(sorted(unknown))}")
    types = get_type_hints(group, include_extras=True)
    return [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=types[name])
        for name, default in {**defaults, **difference.defaults}.items()
        if name not in difference.without
    ]
