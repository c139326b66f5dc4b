"""``stowplan emit``: writes a plan as input of other tools."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from stowplan.cli.options import OUTPUT, PartialPlan, PlanPath
from stowplan.emitters.target import Target

To = Annotated[Target, typer.Option("--to", help="Tool that carries out the plan.", show_default=False)]
Folder = Annotated[
    str | None,
    typer.Option(
        "--directory",
        "-d",
        metavar="FOLDER",
        help="Folder to write files to, instead of printing them.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.", rich_help_panel=OUTPUT)]
Remove = Annotated[
    bool,
    typer.Option(
        "--remove",
        help="Write instead a script that takes off what the tool has put into the cluster (for descheduler, pin).",
    ),
]
PlanSnapshotPaths = Annotated[
    list[str] | None,
    typer.Option(
        "--snapshot",
        metavar="SNAPSHOT",
        help="The dump that the plan was made from (for descheduler, koordinator); repeatable.",
        show_default=False,
    ),
]
Image = Annotated[
    str | None, typer.Option("--image", help="Container image of the descheduler.", show_default="v0.36.0")
]
JobNamespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Namespace of the descheduler's Jobs.", show_default="kube-system"),
]
ExtenderURL = Annotated[
    str | None,
    typer.Option("--url", help="URL of stowplan serve for the scheduler.", show_default="http://127.0.0.1:8888/v1"),
]
AddTo = Annotated[
    str | None,
    typer.Option(
        "--config",
        help="A KubeSchedulerConfiguration to add the extender to.",
        show_default=False,
    ),
]
Kubeconfig = Annotated[
    str | None,
    typer.Option(
        "--kubeconfig",
        metavar="PATH",
        help="Path of the scheduler's kubeconfig on its host (for extender).",
        show_default="with --config as there, otherwise /etc/kubernetes/scheduler.conf",
    ),
]


def emit(
    path: PlanPath,
    to: To,
    remove: Remove = False,
    folder: Folder = None,
    force: Force = False,
    snapshot: PlanSnapshotPaths = None,
    image: Image = None,
    namespace: JobNamespace = None,
    url: ExtenderURL = None,
    config: AddTo = None,
    kubeconfig: Kubeconfig = None,
    partial: PartialPlan = False,
) -> None:
    """Write a plan as a script, as manifests, or as a scheduler configuration."""
    from datetime import UTC, datetime
    from pathlib import Path

    from stowplan.cli.session import warn
    from stowplan.documents.plan import read_plan
    from stowplan.emitters.emission import EmitOptions
    from stowplan.emitters.registry import EMITTERS, REMOVERS
    from stowplan.emitters.remarks import remarks
    from stowplan.emitters.writing import as_text, write_folder
    from stowplan.instances.load import load
    from stowplan.models.errors import InputError
    from stowplan.serving.url import read_url

    if url is not None:
        url = read_url(url, "--url")
    emitters = REMOVERS if remove else EMITTERS
    if to not in emitters:
        left = (
            "its objects go with kubectl delete -f" if to is Target.KOORDINATOR else "it leaves nothing in the cluster"
        )
        raise InputError(f"is not for --to {to.value}: {left}", field="--remove")
    document = read_plan(path)
    chosen = {"image": image, "namespace": namespace, "url": url, "config": config, "kubeconfig": kubeconfig}
    given = {name: value for name, value in chosen.items() if value is not None}
    choices = EmitOptions(snapshot=load(snapshot) if snapshot else None, **given)
    try:
        document.require_whole(partial)
        document.require_cluster()
        emission = emitters[to](document, choices)
    except InputError as error:
        raise error.in_file(path) from None
    if folder is None:
        print(as_text(emission), end="")
    else:
        for written in write_folder(emission, Path(folder), force):
            print(written)
    warnings = () if remove else remarks(document, to.value, choices, datetime.now(UTC))
    for note in (*warnings, *emission.notes):
        warn(note)
    sys.stdout.flush()
