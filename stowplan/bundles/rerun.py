"""Repeats the question of a bundle, and compares the answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

from stowplan.answers.compare import compare
from stowplan.answers.solve import solve_snapshot
from stowplan.bundles.answer import Answer, differences, of_plan, of_solution, of_survival, of_what_if
from stowplan.bundles.bundle import BundleDocument
from stowplan.bundles.making import Question
from stowplan.models.options import Options
from stowplan.models.stop import Stop
from stowplan.optimizer.run import Progress, silent
from stowplan.planning.domain_loss import losing_of
from stowplan.planning.plan import make_plan, planning_problem
from stowplan.planning.survive import survive
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.settings.problem import make_problem
from stowplan.settings.terms import Terms

Ready = Callable[[Compiled], Options]
"""Returns the options of a search that can begin at once."""


@dataclass(frozen=True)
class Rerun:
    """A question that was asked again.

    Parameters
    ----------
    then
        The bundle.
    now
        The answer of today.
    differences
        Between both answers, one line each.
    """

    then: BundleDocument
    now: Answer
    differences: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether the answers are the same."""
        return not self.differences

    @property
    def remarks(self) -> list[str]:
        """Why answers may differ."""
        found = []
        if not self.then.options.get("deterministic"):
            found.append("the search was not deterministic, so its answer depends on the time that it had")
        if self.then.stowplan != version("stowplan"):
            found.append(f"the bundle is of stowplan {self.then.stowplan}, and this is {version('stowplan')}")
        return found


def problem_of(question: Question) -> Compiled:
    """Return the problem of a question."""
    if question.command == "plan":
        return planning_problem(question.snapshot, question.settings, question.terms or Terms())
    return make_problem(question.snapshot, question.settings)


def rerun(
    document: BundleDocument,
    question: Question,
    compiled: Compiled,
    options: Options,
    *,
    stop: Stop | None = None,
    progress: Progress = silent,
) -> Rerun:
    """Ask again.

    Parameters
    ----------
    question, compiled
        What was asked, and its problem.
    options
        Of the search.
    """
    snapshot, settings = question.snapshot, question.settings
    match question.command:
        case "what-if":
            assert question.changed is not None  # or the bundle could not be read
            second = make_problem(*question.changed)
            now = of_what_if(
                solve_snapshot(compiled, options, stop=stop, progress=progress),
                solve_snapshot(second, options, stop=stop),
            )
        case "survive":
            found = survive(snapshot, question.topology or "zone", losing_of(snapshot, settings, options, stop))
            now = of_survival(found)
        case "solve":
            now = of_solution(solve_snapshot(compiled, options, stop=stop, progress=progress))
        case "compare":
            now = of_solution(compare(compiled, options, scores=False, stop=stop, progress=progress).solution)
        case "plan":
            planned = make_plan(
                snapshot,
                settings,
                options,
                question.terms,
                compiled=compiled,
                stop=stop,
                progress=progress,
            )
            now = of_plan(planned.plan)
    return Rerun(document, now, tuple(differences(document.answer, now)))
