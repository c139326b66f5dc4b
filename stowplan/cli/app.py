"""The commands, in the order the help shows them."""

from __future__ import annotations

from typing import Annotated

import typer

from stowplan.cli.commands.anonymize import anonymize
from stowplan.cli.commands.apply import apply
from stowplan.cli.commands.bench import bench
from stowplan.cli.commands.compare import compare
from stowplan.cli.commands.demo import demo
from stowplan.cli.commands.drain import drain
from stowplan.cli.commands.emit import emit
from stowplan.cli.commands.explain import explain
from stowplan.cli.commands.fit import fit
from stowplan.cli.commands.frontier import frontier
from stowplan.cli.commands.generate import generate
from stowplan.cli.commands.plan import plan
from stowplan.cli.commands.replay import replay
from stowplan.cli.commands.rerun import rerun
from stowplan.cli.commands.serve import serve
from stowplan.cli.commands.show import show
from stowplan.cli.commands.simulate import simulate
from stowplan.cli.commands.snapshot import snapshot
from stowplan.cli.commands.solve import solve
from stowplan.cli.commands.survive import survive
from stowplan.cli.commands.validate import validate
from stowplan.cli.commands.verify import verify
from stowplan.cli.commands.what_if import what_if
from stowplan.cli.log_format import with_log_format

app = typer.Typer(
    name="stowplan",
    help="Find a provably good placement of all pods of a Kubernetes cluster, and compare it with kube-scheduler.",
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


MaxInput = Annotated[
    str | None,
    typer.Option(
        "--max-input",
        metavar="SIZE",
        help="Read documents up to this size after unpacking, such as 4Gi; 2Gi by default.",
        show_default=False,
    ),
]


Offline = Annotated[
    bool, typer.Option("--offline", help="Ask no server, not even those that options or a configuration name.")
]


@app.callback()
def _root(
    version: Version = False,
    max_input: MaxInput = None,
    offline: Offline = False,
) -> None:
    """Take options that belong to no command."""
    from stowplan.models.messages import log
    from stowplan.models.network import NETWORK, Network

    NETWORK.set(Network(offline, log))

    if max_input is not None:
        from stowplan.models.errors import InputError
        from stowplan.models.input_bounds import MAX_INPUT, parse_size

        try:
            MAX_INPUT.set(parse_size(max_input))
        except InputError as error:
            raise InputError(error.problem, field="--max-input") from None


COMMANDS = {
    "Answers": (compare, solve, explain, frontier, what_if, survive, simulate, verify, validate, bench, rerun),
    "Plans": (plan, show, emit, serve, drain, fit, replay, apply),
    "Inputs": (snapshot, anonymize, demo, generate),
}
for panel, commands in COMMANDS.items():
    for command in commands:
        named = command.__name__.replace("_", "-")
        app.command(named, rich_help_panel=panel)(with_log_format(command))
