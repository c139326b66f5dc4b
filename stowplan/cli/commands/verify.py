"""``stowplan verify``: checks a solution or a plan against a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stowplan.cli import options as opt
from stowplan.cli.groups import grouped, only
from stowplan.cli.options import Format
from stowplan.models.settings import Settings

if TYPE_CHECKING:
    from stowplan.models.plan import Plan
    from stowplan.models.snapshot import Snapshot
    from stowplan.models.solution import SolutionDocument
    from stowplan.plugins_compat.framework.profile import Profile

DocumentPath = Annotated[
    str,
    typer.Argument(
        metavar="DOCUMENT",
        help="Output of solve, compare, plan, drain, or fit with -o json: a file, or - for standard input.",
        show_default=False,
    ),
]


@grouped
def verify(
    document: DocumentPath,
    paths: opt.Paths,
    settings: Annotated[Settings, only("config")],
    skip_unknown_nodes: opt.SkipUnknownNodes = False,
    output: opt.Output = Format.TABLE,
) -> None:
    """Check a solution or a plan against a snapshot, the same or a newer one; exit 1 if it is not valid."""
    from stowplan.cli.session import load_snapshot
    from stowplan.models.plan import Plan
    from stowplan.settings.problem import document_profile, require_config

    read = _read(document)
    snapshot = load_snapshot(paths, skip_unknown_nodes, configs=[settings.config])
    require_config(read.settings, settings.config, document)
    profile = document_profile(read.settings, settings.config, snapshot)
    if isinstance(read, Plan):
        holds = _plan_holds(snapshot, read, profile, output)
    else:
        holds = _solution_holds(snapshot, read, profile, output)
    if not holds:
        raise typer.Exit(1)


def _read(path: str) -> SolutionDocument | Plan:
    from stowplan.documents.plan import WITH_PLAN, parse_plan
    from stowplan.documents.reading import kind_of, read_content
    from stowplan.documents.solution import parse_solution

    content = read_content(path)
    kind = kind_of(content)
    if kind in WITH_PLAN:
        return parse_plan(content.get("plan"), path)
    if kind == "Plan":
        return parse_plan(content, path)
    return parse_solution(content, path, "Solution, Comparison, Plan, Drain or Fit")


def _solution_holds(snapshot: Snapshot, document: SolutionDocument, profile: Profile, output: Format) -> bool:
    from stowplan.answers.verify_solution import verify
    from stowplan.cli.session import emit
    from stowplan.documents.verification import verification_document
    from stowplan.report.rows import verification_rows
    from stowplan.report.text import show_verification

    verification = verify(snapshot, document, profile)
    emit(
        output,
        lambda console: show_verification(console, verification),
        lambda: verification_document(verification),
        lambda: verification_rows(verification),
    )
    return verification.holds


def _plan_holds(snapshot: Snapshot, plan: Plan, profile: Profile, output: Format) -> bool:
    from stowplan.answers.verify_plan import verify_plan
    from stowplan.cli.session import emit
    from stowplan.documents.verification import plan_verification_document
    from stowplan.report.plan import show_plan_verification
    from stowplan.report.rows import problem_rows

    verification = verify_plan(snapshot, plan, profile)
    emit(
        output,
        lambda console: show_plan_verification(console, verification),
        lambda: plan_verification_document(verification),
        lambda: problem_rows(verification.drift.problems),
    )
    return verification.holds
