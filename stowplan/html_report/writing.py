"""The page of any answer, for the Python interface."""

from __future__ import annotations

import os
from collections.abc import Sequence

from stowplan.answers.compare import Comparison
from stowplan.answers.solve import Solution
from stowplan.answers.what_if import WhatIf
from stowplan.html_report.answers import comparison_page, solution_page
from stowplan.html_report.page import Page
from stowplan.html_report.plan import plan_page
from stowplan.html_report.provenance import search_words
from stowplan.html_report.render import write_page
from stowplan.html_report.replay import replay_page
from stowplan.html_report.survival import survival_page
from stowplan.html_report.what_if import what_if_page
from stowplan.models.errors import InputError
from stowplan.models.options import Options
from stowplan.models.settings import Settings
from stowplan.optimizer.run import Step
from stowplan.planning.plan import Planned
from stowplan.planning.replay import Replay
from stowplan.planning.survive import Survival

Reported = Comparison | Solution | Planned | Replay | WhatIf | Survival


def write_report(
    answer: Reported,
    file: str | os.PathLike[str],
    *,
    settings: Settings | None = None,
    options: Options | None = None,
    steps: Sequence[Step] = (),
) -> None:
    """Write an answer as one HTML page, as ``--report`` does.

    Parameters
    ----------
    answer
        The answer.
    file
        Path of the file.
    settings, options
        It was made with these; by default those of the command line.
    steps
        What the search reported: ``steps = []`` and ``progress=steps.append`` collect it.

    Raises
    ------
    InputError
        If the file cannot be written, or the answer is of another type.
    """
    write_page(_page(answer, settings or Settings(), options or Options(), steps), os.fspath(file))


def _page(answer: Reported, settings: Settings, options: Options, steps: Sequence[Step]) -> Page:
    match answer:
        case Comparison():
            return comparison_page(answer, settings, options, steps)
        case Solution():
            return solution_page(answer, settings, options, steps)
        case Planned():
            return plan_page(answer, search_words(options), steps)
        case Replay():
            return replay_page(answer)
        case WhatIf():
            return what_if_page(answer, settings, options, (steps, ()))
        case Survival():
            return survival_page(answer, settings, options)
    wanted = "what compare, solve, plan, replay, what_if, or survive returns"
    raise InputError(f"is of type {type(answer).__name__}; must be {wanted}", field="answer")
