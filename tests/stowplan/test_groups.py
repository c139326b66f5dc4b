"""Groups of options: what the command line sees of them, and what the command gets."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
import typer
from pydantic import Field

from stowplan.cli.groups import but, given, grouped, only
from stowplan.models.arguments import Arguments
from stowplan.models.command_line import Option
from stowplan.models.errors import InputError

Loud = Annotated[bool, typer.Option("--loud")]
seen: list[Any] = []


def _even(word: str) -> int:
    if int(word) % 2:
        raise ValueError(f"{word} is odd")
    return int(word)


class Frame(Arguments):
    wood: Annotated[Literal["oak", "pine"], Option("Wood.", "Look")] = "oak"
    width: Annotated[Annotated[int, Field(ge=1)] | None, Option("Width.", "Look", flags=("--frame-width",))] = None


class Look(Arguments):
    color: Annotated[str, Option("Color.", "Look", flags=("--color", "-c"))] = "red"
    size: Annotated[int, Field(ge=0, le=9), Option("Size.", "Look")] = 1
    glossy: Annotated[bool, Option("Matt.", "Look", flags=("--matt",), negated=True)] = True
    coats: Annotated[int, Option("Coats.", "Look", read=_even)] = 2
    words: Annotated[tuple[str, ...], Option("Words.", "Look")] = ()
    frame: Frame = Frame(wood="pine")
    secret: int = 0


class Pair(Arguments):
    first: Annotated[str, Field(max_length=3), Option("First.", "Look", flags=("--one",))] = ""


def suits(option: Option) -> bool:
    return option.flags != ("--matt",)


@dataclass(frozen=True)
class Plain:
    loud: Loud = False


@grouped
def paint(
    where: str,
    *,
    first: Loud = True,
    look: Annotated[Look, but("words", color="blue", size=7, secret=5)],
    last: int = 3,
) -> None:
    """Paint."""
    seen.append((where, first, look, last))


class Bracketed(Arguments):
    color: Annotated[str, Option("Needs paint[oil], or red[:SHADE].", "Look")] = ""


@grouped
def choose(look: Bracketed) -> None:
    """Choose."""


@grouped
def show(context: typer.Context, *, look: Look) -> None:
    seen.append((look, given(context, ["color", "size", "width"])))


def run(command: Any, *arguments: str) -> Any:
    app = typer.Typer()
    app.command()(command)
    seen.clear()
    app(arguments, standalone_mode=False)
    return seen.pop()


def test_fields_stand_in_the_place_of_their_group() -> None:
    parameters = inspect.signature(paint).parameters
    assert list(parameters) == ["where", "first", "color", "size", "glossy", "coats", "wood", "width", "last"]
    assert parameters["color"].default == "blue"
    assert parameters["coats"].default == "2"
    assert parameters["wood"].default == "pine"
    assert paint.__doc__ == "Paint."


def test_the_command_gets_the_group() -> None:
    blue = Look(color="blue", size=7, secret=5)
    assert run(paint, "wall") == ("wall", True, blue, 3)
    green = blue.model_copy(update={"color": "green"})
    assert run(paint, "wall", "-c", "green", "--last", "4") == ("wall", True, green, 4)


def test_every_kind_of_field() -> None:
    look, said = run(
        show, "--size", "2", "--matt", "--coats", "4", "--words", "a", "--words", "b", "--wood", "oak",
        "--frame-width", "3",
    )  # fmt: skip
    assert look == Look(size=2, glossy=False, coats=4, words=("a", "b"), frame=Frame(wood="oak", width=3))
    assert said == ["size", "width"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--size", "10"], "--size"),
        (["--frame-width", "0"], "--frame-width"),
        (["--wood", "ash"], "--wood"),
        (["--words"], "--words"),
    ],
)
def test_limits_are_those_of_the_field(arguments: list[str], said: str) -> None:
    with pytest.raises(typer.TyperException) as refused:
        run(show, *arguments)
    assert said in refused.value.format_message()


def test_a_word_that_cannot_be_read_is_told_by_its_option() -> None:
    with pytest.raises(InputError, match=r"^--coats: 3 is odd$"):
        run(show, "--coats", "3")


def test_what_a_group_refuses_is_told_by_its_option() -> None:
    @grouped
    def join(pair: Pair) -> None:
        seen.append(pair)

    assert run(join, "--one", "abc") == Pair(first="abc")
    with pytest.raises(InputError, match=r"^--one: "):
        run(join, "--one", "abcd")


def test_what_is_left_out_is_no_option() -> None:
    with pytest.raises(typer.TyperException) as refused:
        run(paint, "wall", "--words", "a")
    assert "--words" in refused.value.format_message()
    with pytest.raises(typer.TyperException) as refused:
        run(show, "--secret", "2")
    assert "--secret" in refused.value.format_message()


def test_help_says_what_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    app = typer.Typer()
    app.command()(choose)
    app(["--help"], standalone_mode=False)
    shown = re.sub(r"[\s│]+", "", capsys.readouterr().out)
    assert "Needspaint[oil],orred[:SHADE]." in shown


def test_only_some_fields() -> None:
    @grouped
    def some(look: Annotated[Look, only("size", color="blue")]) -> None:
        seen.append(look)

    assert list(inspect.signature(some).parameters) == ["size"]
    assert run(some, "--size", "2") == Look(size=2, color="blue")


def test_fields_that_suit_a_command() -> None:
    @grouped
    def some(look: Annotated[Look, but("words", suits=suits)]) -> None:
        seen.append(look)

    assert list(inspect.signature(some).parameters) == ["color", "size", "coats", "wood", "width"]


def test_options_of_typer_are_taken_as_they_are() -> None:
    @grouped
    def shout(plain: Plain) -> None:
        seen.append(plain)

    assert run(shout, "--loud") == Plain(True)


@pytest.mark.parametrize("difference", [but("weight"), but(weight=1), only("weight")])
def test_a_field_that_is_not_there_is_a_mistake(difference: object) -> None:
    def show(look: Any) -> None: ...

    show.__annotations__["look"] = Annotated[Look, difference]
    with pytest.raises(TypeError, match="Look has no weight"):
        grouped(show)
