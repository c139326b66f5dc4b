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
    """

    command: Command
    snapshot: Snapshot
    settings: Settings
    options: Options
    terms: Terms | None = None


def make_bundle(question: Question, compiled: Compiled, answer: Answer, *, anonymize: bool = False) -> Bundle:
    """Return the bundle of an answer.

    Parameters
    ----------
    compiled
        The problem that was solved, whose objective and prices the bundle holds in place of their files.
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
    terms = None if question.terms is None else _terms(question.terms)
    if anonymize:
        if "metrics" in files:
            raise InputError("cannot be anonymized; leave it out, or --anonymize", field="--metrics")
        names = Pseudonyms(cluster)
        cluster, answer = names.cluster(), _renamed(answer, names)
        settings = _renamed_settings(settings, names)
        files = {name: _renamed_file(content, name, names) for name, content in files.items()}
        terms = terms and {**terms, "frozen": {names.key(key): "frozen" for key in terms["frozen"]}}
    data = written(cluster)
    keys = sorted({key for item in cluster["items"] for key in item["metadata"].get("annotations", {})})
    document = BundleDocument(
        command=question.command,
        anonymized=anonymize,
        stowplan=version("stowplan"),
        python=platform.python_version(),
        platform=f"{sys.platform} {platform.machine()}",
        settings=settings,
        options={name: getattr(question.options, name) for name in OWN_OPTIONS},
        terms=terms,
        annotations=tuple(keys),
        gaps=_told(snapshot.gaps, anonymize),
        fatal_gaps=_told(snapshot.fatal_gaps, anonymize),
        notes=() if anonymize else snapshot.notes,
        fingerprint=load_bytes(data, "the bundle", annotations=keys).fingerprint,
        answer=answer,
    )
    return Bundle(document, data, files)


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
    return answer.model_copy(update={"nodes": nodes, "waves": waves})


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
    settings: dict[str, Any] = dict(document.settings)
    for name in ("config", "metrics"):
        if settings.get(name) is not None:
            content = bundle.files.get(settings[name])
            if content is None:
                raise InputError(f"names {settings[name]!r}, which the bundle does not hold", field=f"settings.{name}")
            place = folder / f"{name}.yaml"
            place.write_bytes(content)
            settings[name] = str(place)
    snapshot = load_bytes(bundle.snapshot, "snapshot.json", annotations=document.annotations)
    gaps, notes = document.gaps, document.notes
    if document.anonymized:  # what is still seen of the gaps is said with the other names
        gaps, notes = (*gaps, *snapshot.gaps), (*gaps, *snapshot.notes)
    snapshot = replace(snapshot, gaps=gaps, fatal_gaps=document.fatal_gaps, notes=notes)
    known = {one.name for one in fields(Options)} & set(OWN_OPTIONS)
    unknown = sorted({*document.options} - known) + sorted({*settings} - {*Settings.model_fields})
    if unknown:
        raise InputError(f"has {unknown[0]!r}, which this version does not know", field="bundle")
    terms = None if document.terms is None else Terms(**document.terms)
    return Question(document.command, snapshot, Settings(**_lists(settings)), Options(**document.options), terms)


def _lists(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with tuples where JSON has arrays."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
