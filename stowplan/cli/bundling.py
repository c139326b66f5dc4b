"""The options of bundles, and their use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from stowplan.cli.options import OUTPUT

if TYPE_CHECKING:
    from stowplan.bundles.answer import Answer
    from stowplan.bundles.making import Question
    from stowplan.plugins_compat.compiler.compile import Compiled

BundleFile = Annotated[
    str | None,
    typer.Option(
        "--bundle",
        metavar="FILE",
        help="Also keep input, settings, and answer in this file, for stowplan rerun.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
Anonymize = Annotated[
    bool,
    typer.Option(
        "--anonymize", help="With --bundle: write other names, so that it can be passed on.", rich_help_panel=OUTPUT
    ),
]


@dataclass(frozen=True, slots=True)
class Bundling:
    """Whether a bundle is kept, and how."""

    bundle: BundleFile = None
    anonymize: Anonymize = False

    def check(self) -> None:
        """Make sure that the bundle can be written, before the search.

        Raises
        ------
        InputError
            If it cannot be, or if there is none to anonymize.
        """
        from stowplan.models.errors import InputError

        if self.bundle is not None:
            from stowplan.html_report.render import require_writable

            require_writable(self.bundle)
        elif self.anonymize:
            raise InputError("needs --bundle", field="--anonymize")

    def keep(self, question: Question, compiled: Compiled, answer: Answer, changed: Compiled | None = None) -> None:
        """Write the bundle, if one is wanted; ``changed`` is the problem with the scenario of ``what-if``."""
        if self.bundle is not None:
            from stowplan.bundles.bundle import write_bundle
            from stowplan.bundles.making import make_bundle

            write_bundle(
                make_bundle(question, compiled, answer, changed=changed, anonymize=self.anonymize), self.bundle
            )
