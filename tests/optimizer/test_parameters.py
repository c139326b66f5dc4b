"""Parameters come from a file as they are written there; whatever is wrong in it is refused in one line."""

from __future__ import annotations

import re
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest

from stowplan.models.errors import InputError
from stowplan.models.options import Options
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.lns.lns import OperatorState
from stowplan.optimizer.parameters import Parameters
from stowplan.optimizer.portfolio import solve
from tests.optimizer.annealing.test_overload import two_full_nodes

COMPONENTS = [part.name for part in fields(Parameters)]


def read(tmp_path: Path, text: str) -> Parameters:
    file = tmp_path / "parameters.toml"
    file.write_text(text, encoding="utf-8")
    return Parameters.from_toml(file)


def written(component: str, values: dict[str, Any]) -> str:
    """Write parameters as TOML; what is not given cannot be written."""
    lines = [f"{key} = {list(v) if isinstance(v, tuple) else v}" for key, v in values.items() if v is not None]
    return "\n".join([f"[{component}]", *lines, ""])


def test_an_empty_file_gives_the_defaults(tmp_path: Path) -> None:
    assert read(tmp_path, "") == Parameters()


def test_all_defaults_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    text = "".join(written(component, asdict(getattr(Parameters(), component))) for component in COMPONENTS)
    assert len(text.splitlines()) > 120
    assert read(tmp_path, text) == Parameters()


def test_what_is_given_is_taken_and_the_rest_stays(tmp_path: Path) -> None:
    found = read(tmp_path, "[lns]\npatience = 7\nmemory = 1\n[annealing]\nrounds = [0.5, 1]\nreheated = [0.1, 0.2]\n")
    assert found.lns.patience == 7
    assert found.lns.memory == 1.0
    assert isinstance(found.lns.memory, float)
    assert found.annealing.rounds == (0.5, 1.0)
    assert found.annealing.reheated == (0.1, 0.2)
    assert found.bounds == Parameters().bounds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[lns]\npatience = 1.5", "lns.patience: is 1.5; must be an integer"),
        ("[lns]\npatience = true", "lns.patience: is True; must be an integer"),
        ('[lns]\nmemory = "much"', "lns.memory: is 'much'; must be a number"),
        ("[lns]\nmemory = nan", "lns.memory: is nan; must be a number"),
        ("[lns]\npatience = -1", "lns.patience: is -1; must be above 0"),
        ("[lns]\npatience = 0", "lns.patience: is 0; must be above 0"),
        ("[annealing]\nrounds = 3", "annealing.rounds: is 3; must be a list of numbers"),
        ("[annealing]\nrounds = []", "annealing.rounds: is []; must be a list of numbers"),
        ("[annealing]\nreheated = [1]", "annealing.reheated: is [1]; must be a list of 2 numbers"),
        ("[annealing]\noperator_weights = [1, 2]", "is [1, 2]; must be a list of 10 numbers"),
        ('[annealing]\nrounds = [1, "a"]', "annealing.rounds[1]: is 'a'; must be a number"),
        ("[lns]\npatince = 1", "lns.patince: is an unknown parameter; must be one of round_size"),
        ("[lsn]\n", "lsn: is an unknown component; must be one of annealing, lns"),
        ("lns = 3", "lns: is 3; must be a table of parameters"),
        ("[lns", "is not TOML"),
    ],
)
def test_what_is_wrong_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as refused:
        read(tmp_path, text)
    assert str(refused.value).startswith(str(tmp_path / "parameters.toml"))
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        Parameters.from_toml(tmp_path / "missing.toml")


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_parameter_is_documented(component: str) -> None:
    kind = type(getattr(Parameters(), component))
    assert kind.__doc__ is not None
    names = re.findall(r"(?m)^    (\w+(?:, \w+)*)$", kind.__doc__)
    documented = {name for line in names for name in line.split(", ")} - {"Parameters"}
    assert documented == {field.name for field in fields(kind)}


def test_parameters_of_the_options_reach_the_algorithms() -> None:
    problem = two_full_nodes()
    # Annealing stays feasible, and so finds nothing; for CP-SAT there is no memory.
    chosen = Parameters.of({"annealing": {"tight": 2.0}, "portfolio": {"bytes_per_variable": 1 << 60}})
    outcome = solve(problem, Options(time_limit=2, deterministic=True, processes=1, parameters=chosen))
    assert "skipped the exact model: it would not fit into memory" in outcome.notes
    assert not solve(problem, Options(time_limit=2, deterministic=True, processes=1)).notes
    operators = OperatorState(Evaluator(problem), Parameters.of({"lns": {"least_work": 0.125}}).lns)
    assert operators.selection(0).work == 0.125


def test_other_things_than_parameters_are_refused() -> None:
    with pytest.raises(InputError, match="parameters: must be a Parameters"):
        solve(two_full_nodes(), Options(parameters={"lns": {}}))
