"""Options made of fields: a command takes settings as one argument, the command line takes them one by one.

A field is an option if its annotation holds an `Option`. Its type, limits and default become those of the option.
Fields that are annotated with a ``typer.Option`` become that option.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from inspect import Parameter
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer
from pydantic import BaseModel
from rich.markup import escape
from typer.models import OptionInfo

from stowplan.models.command_line import Option
from stowplan.models.errors import InputError

LIMITS = {"ge": "min", "le": "max"}
"""Names of the limits of fields in Typer."""


@dataclass(frozen=True, slots=True)
class But:
    """Differences of a group in one command.

    Parameters
    ----------
    without
        Fields that are not options of the command.
    only
        Fields that are options; by default all others.
    suits
        Returns whether an option belongs to the command.
    defaults
        Other defaults, by field; also of fields that are not options.
    """

    without: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None
    suits: Callable[[Option], bool] = lambda option: True
    defaults: Mapping[str, Any] = field(default_factory=dict)


def but(*without: str, suits: Callable[[Option], bool] = lambda option: True, **defaults: Any) -> But:
    """Omit fields of a group, and change defaults; part of the ``Annotated`` of a parameter."""
    return But(without, suits=suits, defaults=defaults)


def only(*names: str, **defaults: Any) -> But:
    """Take these fields of a group and no others, and change defaults."""
    return But(only=names, defaults=defaults)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes its groups field by field, each in the place of its group.

    A parameter is a group if its type is a dataclass or a model. What a group refuses is told by the option that it
    was given with.

    Raises
    ------
    TypeError
        If a group is to be different in a field that it does not have.
    """
    parameters: list[Parameter] = []
    groups: list[tuple[str, _Group]] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        cls, difference = _group(parameter.annotation)
        if cls is None:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
        else:
            group = _Group(cls, difference)
            parameters += [one.parameter for one in group.options]
            groups.append((parameter.name, group))

    @functools.wraps(command)
    def ungrouped(**given: Any) -> None:
        for name, group in groups:
            given[name] = group.made({one.name: given.pop(one.name) for one in group.options})
        command(**given)

    return taking(parameters, ungrouped)


def taking(parameters: Sequence[Parameter], command: Callable[..., None]) -> Callable[..., None]:
    """Return a command of any keyword arguments as one that takes these parameters."""
    # Typer reads both. The type of functions in mypy lacks the first, which is Python's own (PEP 362).
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def completed(words: Sequence[str]) -> Callable[[str], list[str]]:
    """Return what completes the beginning of a word to one of these."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def given(context: typer.Context, names: Iterable[str]) -> list[str]:
    """Return those of some fields that were given on the command line."""
    sources = {name: context.get_parameter_source(name) for name in names}
    return [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]


@dataclass(frozen=True, slots=True)
class _Field:
    """A field that is an option.

    Parameters
    ----------
    inside
        The field of the group that holds the model which the field is of, if that is not the group itself.
    """

    name: str
    type: Any
    option: Option | None
    parameter: Parameter
    inside: str | None = None

    @property
    def flag(self) -> str:
        return self.option.flag(self.name) if self.option else "--" + self.name.replace("_", "-")

    def value(self, word: Any) -> Any:
        """Return the value of the field for what the user gave."""
        if self.option is not None and self.option.several:
            word = word or None
        if self.option is not None and self.option.read is not None and word is not None:
            try:
                return self.option.read(word)
            except ValueError as error:
                raise InputError(str(error), field=self.flag) from None
        if get_origin(self.type) is tuple:
            return tuple(word or ())
        return not word if self.option is not None and self.option.negated else word


class _Group:
    """A model or a dataclass whose fields are options of a command."""

    def __init__(self, cls: type, difference: But) -> None:
        self.cls = cls
        self.defaults = difference.defaults
        names = {name for name, _, _ in _fields(cls)}
        asked = {*difference.without, *difference.defaults, *(difference.only or ())}
        if unknown := asked - names:
            raise TypeError(f"{cls.__name__} has no {', '.join(sorted(unknown))}")
        self.options = [one for one in _options(cls, difference) if _belongs(one, difference)]

    def made(self, words: Mapping[str, Any]) -> Any:
        """Return the group with the values that the user gave."""
        values: dict[str, Any] = dict(self.defaults)
        inner: dict[str, dict[str, Any]] = {}
        for one in self.options:
            place = values if one.inside is None else inner.setdefault(one.inside, {})
            place[one.name] = one.value(words[one.name])
        types = {name: cls for name, cls, _ in _fields(self.cls)}
        values |= {name: _bare(types[name])[0](**parts) for name, parts in inner.items()}
        try:
            return self.cls(**values)
        except InputError as error:
            flags = {one.name: one.flag for one in self.options}
            raise replace(error, field=flags.get(error.field or "", error.field)) from None


def _belongs(one: _Field, difference: But) -> bool:
    if difference.only is not None:
        return one.name in difference.only
    return one.name not in difference.without and (one.option is None or difference.suits(one.option))


def _group(annotation: Any) -> tuple[type | None, But]:
    """Return the class that a parameter is annotated with, if it is a group, and how it is different here."""
    base, notes = _bare(annotation)
    difference = next((note for note in notes if isinstance(note, But)), But())
    return (base if _is_group(base) else None), difference


def _is_group(cls: Any) -> bool:
    return isinstance(cls, type) and (is_dataclass(cls) or issubclass(cls, BaseModel))


def _bare(annotation: Any) -> tuple[Any, list[Any]]:
    """Return an annotation without its notes, and the notes, those of annotations inside included."""
    if get_origin(annotation) in (Union, UnionType):
        parts = [_bare(part) for part in get_args(annotation)]
        return Union[tuple(base for base, _ in parts)], [note for _, notes in parts for note in notes]  # noqa: UP007
    if get_origin(annotation) is not Annotated:
        return annotation, []
    base, *notes = get_args(annotation)
    inner, more = _bare(base)
    return inner, [*more, *notes]


def _fields(cls: type) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, annotation and default of each field."""
    hints = get_type_hints(cls, include_extras=True)
    if is_dataclass(cls):
        for one in fields(cls):
            yield one.name, hints[one.name], None if one.default is MISSING else one.default
    elif issubclass(cls, BaseModel):
        for name, info in cls.model_fields.items():
            yield name, hints[name], info.get_default()


def _options(cls: type, difference: But, inside: str | None = None, holder: Any = None) -> Iterator[_Field]:
    """Yield the fields that are options; of a field that is a model itself, the fields of that."""
    for name, annotation, default in _fields(cls):
        base, notes = _bare(annotation)
        if inside is not None:
            default = getattr(holder, name)
        default = difference.defaults.get(name, default)
        option = next((note for note in notes if isinstance(note, Option)), None)
        if option is not None:
            yield _Field(name, base, option, _parameter(name, base, notes, option, default), inside)
        elif any(isinstance(note, OptionInfo) for note in notes):
            parameter = Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            yield _Field(name, base, None, parameter, inside)
        elif inside is None and _is_group(base):
            yield from _options(base, difference, name, default)


def _parameter(name: str, base: Any, notes: list[Any], option: Option, default: Any) -> Parameter:
    """Return a field as a parameter that Typer understands."""
    limits = {
        word: getattr(part, limit)
        for note in notes
        for part in getattr(note, "metadata", [note])
        for limit, word in LIMITS.items()
        if hasattr(part, limit) and option.read is None
    }
    kind: Any
    if option.several:
        kind, default = list[str] | None, None
    elif option.read is not None:
        kind, default = (str | None if default is None else str), None if default is None else option.write(default)
    elif get_origin(base) is tuple:
        kind, default = list[str] | None, list(default) or None
    else:
        kind, default = base, not default if option.negated else default
    info = typer.Option(
        *(option.flags or (option.flag(name),)),
        help=escape(option.help),
        metavar=option.metavar,
        show_default=option.show_default,
        rich_help_panel=option.panel,
        autocompletion=completed(option.words) if option.words else None,
        **limits,
    )
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info])
