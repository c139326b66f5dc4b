"""Makes bundles: gathers what an answer was made from, with its own names or with others."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from stowplan.bundles.answer import Answer
from stowplan.bundles.bundle import Bundle, BundleDocument, Command
from stowplan.instances.anonymize import Pseudonyms
from stowplan.instances.documents import read_documents
from stowplan.instances.load import load_bytes
from stowplan.instances.manifest_list import manifest_list, written
from stowplan.models.errors import InputError
from stowplan.models.options import Options
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.models.yaml_input import parse_one_yaml
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.settings.durations import write_duration
from stowplan.settings.terms import Terms

OWN_OPTIONS = ("time_limit", "deterministic", "seed", "workers", "largest_model", "processes", "gap", "kernels")
"""Options that belong to the question; how much memory there is belongs to the machine."""


@dataclass(frozen=True)
class Question:
    """What was asked.

    Parameters
    ----------
    terms
        Of a plan.
    snapshot
        As it was read.
    changed
        The cluster and the settings with the scenario of ``what-if``.
    topology
        Of ``survive``: the label whose values are lost one after the other, or ``node``.
    """

    command: Command
    snapshot: Snapshot
    settings: Settings
    options: Options
    terms: Terms | None = None
    changed: tuple[Snapshot, Settings] | None = None
    topology: str | None = None


def make_bundle(
    question: Question,
    compiled: Compiled,
    answer: Answer,
    *,
    changed: Compiled | None = None,
    anonymize: bool = False,
) -> Bundle:
    """Return the bundle of an answer.

    Parameters
    ----------
    compiled
        The problem that was solved, whose objective and prices the bundle holds in place of their files.
    changed
        The same with the scenario of ``what-if``.
    anonymize
        Whether to write other names.

    Raises
    ------
    InputError
        If settings name a server, or if other names are wanted and settings name measured load.
    """
    snapshot = question.snapshot
    cluster = manifest_list(snapshot)
    settings, files = _settings(question.settings, compiled)
    other, other_settings, topology = None, None, question.topology
    if question.changed is not None and changed is not None:
        other, (other_settings, _) = manifest_list(question.changed[0]), _settings(question.changed[1], changed)
    terms = None if question.terms is None else _terms(question.terms)
    if anonymize:
        if "metrics" in files:
            raise InputError("cannot be anonymized; leave it out, or --anonymize", field="--metrics")
        names = Pseudonyms({**cluster, "items": [*cluster["items"], *(other["items"] if other else ())]})
        cluster, answer = names.renamed(cluster), _renamed(answer, names)
        other = other and names.renamed(other)
        settings = _renamed_settings(settings, names)
        other_settings = other_settings and _renamed_settings(other_settings, names)
        topology = topology if topology in (None, "node") else names.of(topology)
        files = {name: _renamed_file(content, name, names) for name, content in files.items()}
        terms = terms and {**terms, "frozen": {names.key(key): "frozen" for key in terms["frozen"]}}
    data = written(cluster)
    items = [*cluster["items"], *(other["items"] if other else ())]
    keys = sorted({key for item in items for key in item["metadata"].get("annotations", {})})
    document = BundleDocument(
        command=question.command,
        anonymized=anonymize,
        stowplan=version("stowplan"),
        python=platform.python_version(),
        platform=f"{sys.platform} {platform.machine()}",
        settings=settings,
        options={name: getattr(question.options, name) for name in OWN_OPTIONS},
        terms=terms,
        changed_settings=other_settings,
        topology=topology,
        annotations=tuple(keys),
        gaps=_told(snapshot.gaps, anonymize),
        fatal_gaps=_told(snapshot.fatal_gaps, anonymize),
        notes=() if anonymize else snapshot.notes,
        fingerprint=load_bytes(data, "the bundle", annotations=keys).fingerprint,
        answer=answer,
    )
    return Bundle(document, data, files, written(other) if other else None)


INCOMPLETE = "the dump was incomplete; what it lacked is not told with other names"
"""Gap of an anonymized bundle."""

NAMING = frozenset({"schedulerName", "topologyKey", "spread", "key", "values", "matchLabels", "label", "labels"})
"""Fields of objectives and configurations that hold names of the cluster."""


def _settings(settings: Settings, compiled: Compiled) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the settings by name, with what they name in place of its name, and the files that they name."""
    plain = {name: getattr(settings, name) for name in Settings.model_fields}
    plain["objective"] = compiled.objective.model_dump(mode="json", by_alias=True)
    plain["prices"] = None if compiled.prices is None else dict(compiled.prices)
    plain["release"] = compiled.profile.release.name
    files = {}
    for name in ("config", "metrics"):
        path = plain[name]
        if path is not None:
            if not Path(path).is_file():
                raise InputError(f"is {path!r}; a bundle holds files, and this is none", field=f"--{name}")
            (document,) = read_documents([path])
            files[name], plain[name] = document.data, name
    return {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}, files


def _told(gaps: Sequence[str], anonymize: bool) -> tuple[str, ...]:
    """Return gaps as a bundle has them: their words may name objects."""
    return (INCOMPLETE,) if anonymize and gaps else tuple(gaps)


def _terms(terms: Terms) -> dict[str, Any]:
    """Return terms by name, durations as the command line takes them."""
    durations = {name: write_duration(getattr(terms, name)) for name in ("expires_in", "wave_timeout")}
    return {**terms.model_dump(mode="json"), **durations}


def _renamed(answer: Answer, names: Pseudonyms) -> Answer:
    """Return an answer with other names."""
    nodes = {names.key(key): node and names.of(node) for key, node in answer.nodes.items()}
    waves = tuple(
        tuple(
            move.model_copy(
                update={
                    "pod": names.key(move.pod),
                    "source": move.source and names.of(move.source),
                    "target": move.target and names.of(move.target),
                }
            )
            for move in wave
        )
        for wave in answer.waves
    )
    losses = tuple(
        loss.model_copy(
            update={"domain": names.of(loss.domain), "pending": tuple(names.key(key) for key in loss.pending)}
        )
        for loss in answer.losses
    )
    scenario = answer.scenario and _renamed(answer.scenario, names)
    return answer.model_copy(update={"nodes": nodes, "waves": waves, "losses": losses, "scenario": scenario})


def _renamed_settings(settings: Mapping[str, Any], names: Pseudonyms) -> dict[str, Any]:
    """Return settings with other names."""
    prices, scheduler = settings["prices"], settings["scheduler"]
    return {
        **settings,
        "objective": names.inside(settings["objective"], NAMING),
        "prices": prices and {names.of(node): price for node, price in prices.items()},
        "scheduler": scheduler and names.of(scheduler),
        "drain": [names.of(node) for node in settings["drain"]],
        "admit": [names.key(key) for key in settings["admit"]],
        "freeze": [names.selector(word) for word in settings["freeze"]],
        "max_moves_of": [names.selector(word) for word in settings["max_moves_of"]],
    }


def _renamed_file(content: bytes, name: str, names: Pseudonyms) -> bytes:
    """Return a configuration with other names; it must not say where servers are."""
    parsed = parse_one_yaml(content, name)
    if isinstance(parsed, dict) and parsed.get("extenders"):
        raise InputError("names extenders, which cannot be anonymized", field="--config")
    renamed: bytes = yaml.safe_dump(names.inside(parsed, NAMING), sort_keys=False).encode()
    return renamed


def restored(bundle: Bundle, folder: Path) -> Question:
    """Return the question of a bundle; the files that its settings name are written to a folder.

    Raises
    ------
    InputError
        If settings, options, terms, or the snapshot cannot be used.
    """
    document = bundle.document
    places = {}
    for name in ("config", "metrics"):
        kept = document.settings.get(name)
        if kept is not None:
            content = bundle.files.get(kept)
            if content is None:
                raise InputError(f"names {kept!r}, which the bundle does not hold", field=f"settings.{name}")
            place = folder / f"{name}.yaml"
            place.write_bytes(content)
            places[name] = str(place)
    known = {one.name for one in fields(Options)} & set(OWN_OPTIONS)
    named = {*document.settings, *(document.changed_settings or ())}
    unknown = sorted({*document.options} - known) + sorted(named - {*Settings.model_fields})
    if unknown:
        raise InputError(f"has {unknown[0]!r}, which this version does not know", field="bundle")
    changed = None
    if bundle.changed is not None and document.changed_settings is not None:
        other = Settings(**_lists({**document.changed_settings, **places}))
        changed = _read(bundle.changed, "changed.json", document), other
    return Question(
        document.command,
        _read(bundle.snapshot, "snapshot.json", document),
        Settings(**_lists({**document.settings, **places})),
        Options(**document.options),
        None if document.terms is None else Terms(**document.terms),
        changed,
        document.topology,
    )


def _read(data: bytes, name: str, document: BundleDocument) -> Snapshot:
    """Read a snapshot of a bundle, with what the bundle says that it lacks."""
    snapshot = load_bytes(data, name, annotations=document.annotations)
    gaps, notes = document.gaps, document.notes
    if document.anonymized:  # what is still seen of the gaps is said with the other names
        gaps, notes = (*gaps, *snapshot.gaps), (*gaps, *snapshot.notes)
    return replace(snapshot, gaps=gaps, fatal_gaps=document.fatal_gaps, notes=notes)


def _lists(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with tuples where JSON has arrays."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
