"""The option of every command that says how lines on standard error are written."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Annotated, Any

import typer

from stowplan.cli.groups import taking
from stowplan.cli.options import OUTPUT
from stowplan.models.messages import LOG_FORMAT, LogFormat


def _set(value: LogFormat) -> LogFormat:
    LOG_FORMAT.set(value)
    return value


# Before all others, so that what is wrong with those is told in this format.
Format = Annotated[
    LogFormat,
    typer.Option(
        "--log-format",
        help="Format of lines on stderr; json writes one object per line.",
        rich_help_panel=OUTPUT,
        is_eager=True,
        callback=_set,
    ),
]


def with_log_format(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes the option too."""
    parameters = [*inspect.signature(command, eval_str=True).parameters.values()]
    parameters.append(Parameter("log_format", Parameter.KEYWORD_ONLY, default=LogFormat.TEXT, annotation=Format))

    @functools.wraps(command)
    def formatted(log_format: LogFormat, **given: Any) -> None:
        del log_format  # it was set when it was read
        command(**given)

    return taking(parameters, formatted)
