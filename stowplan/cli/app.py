"""The commands, in the order the help shows them."""

from __future__ import annotations

from typing import Annotated

import typer

from stowplan.cli.commands import carrying, clusters, errands, judging, measuring, placing, plans, rehearsing

app = typer.Typer(
    name="stowplan",
    help="Find a provably good placement of all pods of a Kubernetes cluster, beside what kube-scheduler would do.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("stowplan"))
        raise typer.Exit()


Version = Annotated[bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)]


@app.callback()
def _root(
    version: Version = False,
) -> None:
    """Take options that belong to no command."""


ANSWERS, PLANS, MATERIAL = "Answers", "Plans", "Material"

app.command("compare", rich_help_panel=ANSWERS)(placing.compare)
app.command("solve", rich_help_panel=ANSWERS)(placing.solve)
app.command("frontier", rich_help_panel=ANSWERS)(rehearsing.frontier)
app.command("simulate", rich_help_panel=ANSWERS)(judging.simulate)
app.command("verify", rich_help_panel=ANSWERS)(judging.verify)
app.command("validate", rich_help_panel=ANSWERS)(judging.validate)
app.command("bench", rich_help_panel=ANSWERS)(measuring.bench)
app.command("plan", rich_help_panel=PLANS)(plans.plan)
app.command("emit", rich_help_panel=PLANS)(carrying.emit)
app.command("serve", rich_help_panel=PLANS)(carrying.serve)
app.command("drain", rich_help_panel=PLANS)(errands.drain)
app.command("fit", rich_help_panel=PLANS)(errands.fit)
app.command("replay", rich_help_panel=PLANS)(rehearsing.replay)
app.command("apply", rich_help_panel=PLANS)(clusters.apply)
app.command("snapshot", rich_help_panel=MATERIAL)(clusters.snapshot)
app.command("demo", rich_help_panel=MATERIAL)(placing.demo)
app.command("generate", rich_help_panel=MATERIAL)(measuring.generate)
