"""Commands that hand a plan to others: emit, serve."""

from __future__ import annotations

import sys

from stowplan.cli import carrying_options as opt
from stowplan.cli.options import PlanPath


def emit(
    plan: PlanPath,
    to: opt.To,
    folder: opt.Folder = None,
    force: opt.Force = False,
    snapshot: opt.PlanSnapshotPaths = None,
    image: opt.SearchState = None,
    namespace: opt.JobNamespace = None,
    url: opt.ExtenderURL = None,
    config: opt.AddTo = None,
) -> None:
    """Write a plan as what carries it out: a script, manifests, a scheduler configuration."""
    from datetime import UTC, datetime
    from pathlib import Path

    from stowplan.cli.session import warn
    from stowplan.documents.plan import read_plan
    from stowplan.emitters.emission import Choices
    from stowplan.emitters.registry import EMITTERS
    from stowplan.emitters.remarks import remarks
    from stowplan.emitters.writing import as_text, write_folder
    from stowplan.instances.load import load
    from stowplan.models.errors import InputError
    from stowplan.serving.url import read_url

    if url is not None:
        url = read_url(url, "--url")
    document = read_plan(plan)
    chosen = {"image": image, "namespace": namespace, "url": url, "config": config}
    given = {name: value for name, value in chosen.items() if value is not None}
    choices = Choices(snapshot=load(snapshot) if snapshot else None, **given)
    try:
        emission = EMITTERS[to.value](document, choices)
    except InputError as error:
        raise error.in_file(plan) from None
    if folder is None:
        print(as_text(emission), end="")
    else:
        for path in write_folder(emission, Path(folder), force):
            print(path)
    for note in (*remarks(document, to.value, choices, datetime.now(UTC)), *emission.notes):
        warn(note)
    sys.stdout.flush()


def serve(
    plan: PlanPath,
    bind: opt.Bind = "127.0.0.1:8888",
    mode: opt.ServingMode = opt.Steering.PRIORITIZE,
    state: opt.State = None,
    certificate: opt.TLSCertificate = None,
    key: opt.TLSKey = None,
    client_ca: opt.TLSClientCA = None,
    lease: opt.LeaseSeconds = 360.0,
    patience: opt.Patience = 300.0,
    max_body: opt.MaxBody = "64Mi",
) -> None:
    """Steer replacements to their nodes: a scheduler extender that hands out the plan's tokens over HTTP."""
    from stowplan.documents.plan import read_plan
    from stowplan.serving.run import byte_count, run_server
    from stowplan.serving.server import Serving

    document = read_plan(plan)
    largest = byte_count(max_body, "--max-body")
    serving = Serving("filter" if mode is opt.Steering.FILTER else "prioritize", lease, patience, largest)
    run_server(document, bind, serving, state, certificate, key, client_ca)
