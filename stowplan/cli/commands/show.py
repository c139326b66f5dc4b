"""``stowplan show``: a plan that was made before, as a person reviews it or a policy reads it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, assert_never

import typer

from stowplan.cli import options as opt
from stowplan.cli.exit_codes import CHANGES


class ReviewFormat(StrEnum):
    """Format of a plan that is reviewed."""

    TABLE = "table"
    WIDE = "wide"
    MARKDOWN = "markdown"
    JSON = "json"


ReviewOutput = Annotated[
    ReviewFormat, typer.Option("--output", "-o", help="Output format.", rich_help_panel=opt.OUTPUT)
]
Limit = Annotated[
    int,
    typer.Option(
        "--limit",
        min=0,
        help="Maximum number of moves in table and markdown, and of rows in each other list of markdown; 0 for all.",
        rich_help_panel=opt.OUTPUT,
    ),
]
EmptyOrNot = Annotated[
    bool, typer.Option("--detailed-exitcode", help="Exit 2 if the plan has moves.", rich_help_panel=opt.OUTPUT)
]


def show(
    path: opt.PlanPath,
    *,
    limit: Limit = 40,
    output: ReviewOutput = ReviewFormat.TABLE,
    detailed_exitcode: EmptyOrNot = False,
) -> None:
    """Show a plan that was made before: for review, as a comment, or for a policy."""
    from datetime import UTC, datetime

    from stowplan.cli.session import write_report
    from stowplan.documents.plan import read_plan_and_hash
    from stowplan.models.moments import require_time
    from stowplan.models.words import printable, printable_json
    from stowplan.report.plan import show_plan
    from stowplan.report.review import review

    plan, digest = read_plan_and_hash(path)
    expired = require_time(plan.expires_at, "expiresAt") <= datetime.now(UTC)
    match output:
        case ReviewFormat.TABLE | ReviewFormat.WIDE:
            wide = output is ReviewFormat.WIDE or not limit
            write_report(lambda console: show_plan(console, plan, None, wide=wide, limit=limit))
            print(f"SHA-256 of the file, for apply --expect-hash: {digest}")
            if expired:
                print(printable(f"The plan expired at {plan.expires_at}; make a new one."))
        case ReviewFormat.MARKDOWN:
            print(printable("\n".join(review(plan, digest, limit, expired=expired)).rstrip()))
        case ReviewFormat.JSON:
            print(printable_json(plan.model_dump_json(by_alias=True, indent=2)))
        case _:
            assert_never(output)
    if detailed_exitcode and plan.waves:
        raise typer.Exit(CHANGES)
