"""Groups of options: what the command line sees of them, and what the command gets."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
import typer

from stowplan.cli.groups import but, grouped

Colour = Annotated[str, typer.Option("--colour")]
Size = Annotated[int, typer.Option("--size")]
Loud = Annotated[bool, typer.Option("--loud")]
seen: list[Any] = []


@dataclass(frozen=True)
class Look:
    colour: Colour = "red"
    size: Size = 1
    loud: Loud = False


@grouped
def paint(
    where: str, *, first: Loud = True, look: Annotated[Look, but("loud", "size", colour="blue", size=7)], last: int = 3
) -> None:
    """Paint."""
    seen.append((where, first, look, last))


def run(command: Any, *arguments: str) -> Any:
    app = typer.Typer()
    app.command()(command)
    seen.clear()
    app(arguments, standalone_mode=False)
    return seen.pop()


def test_fields_stand_in_the_place_of_their_group() -> None:
    parameters = inspect.signature(paint).parameters
    assert list(parameters) == ["where", "first", "colour", "last"]
    assert parameters["colour"].annotation == Colour
    assert parameters["colour"].default == "blue"
    assert paint.__doc__ == "Paint."


def test_the_command_gets_the_group() -> None:
    assert run(paint, "wall") == ("wall", True, Look("blue", 7, False), 3)
    assert run(paint, "wall", "--colour", "green", "--last", "4") == ("wall", True, Look("green", 7, False), 4)


def test_what_is_left_out_is_no_option() -> None:
    with pytest.raises(typer.TyperException, match="--size"):
        run(paint, "wall", "--size", "2")


def test_a_group_as_it_is() -> None:
    @grouped
    def show(look: Look) -> None:
        seen.append(look)

    assert run(show, "--size", "2", "--loud") == Look("red", 2, True)


@pytest.mark.parametrize("difference", [but("weight"), but(weight=1)])
def test_a_field_that_is_not_there_is_a_mistake(difference: object) -> None:
    def show(look: Any) -> None: ...

    show.__annotations__["look"] = Annotated[Look, difference]
    with pytest.raises(TypeError, match="Look has no weight"):
        grouped(show)
