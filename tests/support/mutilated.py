"""Dumps from which kinds, namespaces, and fields are removed at random, and whether the gaps that are told name them.

``python -m tests.support.mutilated --count 1000 DUMP...`` mutilates dumps of real clusters: every removal that a reader
of the dump could miss has to be named, and planning ends with a plan or with one line, never with a traceback.
"""

from __future__ import annotations

import argparse
import copy
import io
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from stowplan.cli import run
from stowplan.instances.completeness import ASKED, RESOURCES, statement_of
from stowplan.instances.documents import read_documents
from stowplan.instances.items import split
from stowplan.instances.load import load
from stowplan.models.errors import InputError

Manifest = dict[str, Any]
READ = frozenset(kind for _, kind in RESOURCES.values())
WORDS = {
    "Node": ("node",),
    "Pod": ("pods are missing", "Pod object"),
    "PersistentVolume": ("PersistentVolume", "volume"),
    "PersistentVolumeClaim": ("PersistentVolumeClaim", "claim"),
    "StorageClass": ("StorageClass", "storage class"),
    "PriorityClass": ("PriorityClass", "priority class"),
    "Namespace": ("namespace", "Namespace"),
}
"""By which words a gap names a kind, if not by the kind itself."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field that can be removed.

    Parameters
    ----------
    told
        Whether something in the object tells that it had the field; only then can a gap be named.
    word
        What a gap says of it.
    by
        Another field that tells it: once that is gone as well, nothing does.
    """

    kind: str
    path: tuple[str, ...]
    told: Callable[[Manifest], bool]
    word: str
    by: tuple[str, ...] = ()


def _live(item: Manifest) -> bool:
    return item.get("status", {}).get("phase") not in ("Succeeded", "Failed")


def _controlled(item: Manifest) -> bool:
    owners = item["metadata"].get("ownerReferences") or ()
    return any(owner["kind"] in ("ReplicaSet", "StatefulSet", "DaemonSet", "Job") for owner in owners)


def _static(item: Manifest) -> bool:
    return "kubernetes.io/config.mirror" in (item["metadata"].get("annotations") or {})


def _burstable(item: Manifest) -> bool:
    """Whether a pod says that it has requests, and loses them with its first container."""
    containers = item["spec"].get("containers", []) + item["spec"].get("initContainers", [])
    having = [one for one in containers if any((one.get("resources") or {}).values())]
    return item.get("status", {}).get("qosClass") in ("Guaranteed", "Burstable") and len(having) == 1


def _mounts(item: Manifest) -> bool:
    return bool(item["spec"].get("volumes")) and any(
        one.get("volumeMounts") for one in item["spec"].get("containers", ())
    )


WELL_KNOWN = ("system-node-critical", "system-cluster-critical")
"""Priority classes of every cluster, whose values are known without the field."""

FIELDS = (
    Field("Node", ("status", "allocatable"), lambda item: True, "status.allocatable"),
    Field("Node", ("status", "conditions"), lambda item: True, "status.conditions"),
    Field("Node", ("metadata", "labels"), lambda item: True, "metadata.labels"),
    Field("Node", ("metadata", "uid"), lambda item: True, "metadata.uid"),
    Field("Pod", ("status", "phase"), lambda item: True, "status.phase"),
    Field("Pod", ("metadata", "uid"), lambda item: True, "metadata.uid"),
    Field("Pod", ("spec", "nodeName"), lambda item: _live(item) and "startTime" in item["status"], "spec.nodeName"),
    Field(
        "Pod",
        ("spec", "volumes"),
        lambda item: _live(item) and _mounts(item),
        "spec.volumes",
        by=("spec", "containers"),
    ),
    Field(
        "Pod",
        ("spec", "priority"),
        lambda item: _live(item) and (item["spec"].get("priorityClassName") or WELL_KNOWN[0]) not in WELL_KNOWN,
        "spec.priority",
    ),
    Field(
        "Pod",
        ("metadata", "ownerReferences"),
        lambda item: _live(item) and _controlled(item) and "generateName" in item["metadata"],
        "metadata.ownerReferences",
    ),
    Field(
        "Pod",
        ("metadata", "labels"),
        lambda item: _live(item) and _controlled(item) and not _static(item),
        "metadata.labels",
        by=("metadata", "ownerReferences"),
    ),
    Field("Pod", ("spec", "containers"), lambda item: True, "spec.containers"),
    Field(
        "Pod",
        ("spec", "containers", "resources"),
        lambda item: _live(item) and _burstable(item),
        "spec.containers[].resources",
    ),
    Field("PodDisruptionBudget", ("spec", "selector"), lambda item: True, "without a selector"),
)


@dataclass(frozen=True, slots=True)
class Removal:
    """Something that was removed, and the words of which a gap has to have one.

    ``objects`` are the ids of the objects that tell that they had a field, if a field was removed, as long as they have
    the field ``by``.
    """

    what: str
    words: tuple[str, ...]
    objects: frozenset[int] = frozenset()
    by: tuple[str, ...] = ()


def objects(path: str | Path) -> list[Manifest]:
    """Return the objects of a dump."""
    found = []
    for document in read_documents([str(path)]):
        for item in split(document):
            content = json.loads(item.content) if isinstance(item.content, bytes) else item.content
            found.append({"kind": item.kind, **content})
    return found


def mutilated(items: Sequence[Manifest], rng: random.Random) -> tuple[Manifest, list[Removal]]:
    """Return a list without one to three kinds, namespaces, or fields, and what has to be named of that.

    Half of the lists say what they held before, as ``stowplan snapshot`` writes them.
    """
    stated = {"annotations": {ASKED: statement_of(items)}} if rng.random() < 0.5 else {}
    found = copy.deepcopy(list(items))
    removals: list[Removal] = []
    for _ in range(rng.randint(1, 3)):
        kept, removed = rng.choice((_without_kind, _without_namespace, _without_field))(found, rng)
        found = kept
        removals += removed
    present = [one for one in removals if not one.objects or any(_tells(item, one) for item in found)]
    return {"apiVersion": "v1", "kind": "List", "metadata": stated, "items": found}, present


def _tells(item: Manifest, removal: Removal) -> bool:
    """Whether an object still tells what it lost: it, or the field that tells it, may have been removed later."""
    return id(item) in removal.objects and (not removal.by or _has(item, removal.by))


def _without_kind(items: list[Manifest], rng: random.Random) -> tuple[list[Manifest], list[Removal]]:
    kinds = sorted({item["kind"] for item in items} & READ - {"Node"})
    if not kinds:
        return items, []
    kind = rng.choice(kinds)
    return [item for item in items if item["kind"] != kind], [Removal(f"kind {kind}", WORDS.get(kind, (kind,)))]


def _without_namespace(items: list[Manifest], rng: random.Random) -> tuple[list[Manifest], list[Removal]]:
    """Remove a namespace with all that is in it, and in half of the cases its own object."""
    spaces = sorted({item["metadata"]["namespace"] for item in items if item["metadata"].get("namespace")})
    if not spaces:
        return items, []
    space, itself = rng.choice(spaces), rng.random() < 0.5
    kept = [
        item
        for item in items
        if item["metadata"].get("namespace") != space
        and not (itself and item["kind"] == "Namespace" and item["metadata"]["name"] == space)
    ]
    return kept, [Removal(f"namespace {space}", ("namespace", "are missing", "is missing"))]


def _without_field(items: list[Manifest], rng: random.Random) -> tuple[list[Manifest], list[Removal]]:
    """Remove a field of one object, or of all of a kind."""
    fields = [field for field in FIELDS if any(item["kind"] == field.kind and _has(item, field.path) for item in items)]
    if not fields:
        return items, []
    field = rng.choice(fields)
    having = [item for item in items if item["kind"] == field.kind and _has(item, field.path)]
    chosen = having if rng.random() < 0.5 else [rng.choice(having)]
    told = frozenset(id(item) for item in chosen if field.told(item))
    for item in chosen:
        for holder in _holders(item, field.path):
            holder.pop(field.path[-1], None)
    name = f"field {field.kind} {'.'.join(field.path)}"
    return items, [Removal(name, (field.word,), told, field.by)] if told else []


def _has(item: Manifest, path: tuple[str, ...]) -> bool:
    return any(holder.get(path[-1]) for holder in _holders(item, path))


def _holders(item: Manifest, path: tuple[str, ...]) -> Iterator[Manifest]:
    """Yield the maps that hold the last part of a path; a list stands for its elements."""
    holders: list[Any] = [item]
    for part in path[:-1]:
        inner = [holder.get(part) for holder in holders if isinstance(holder, dict)]
        holders = [one for found in inner for one in (found if isinstance(found, list) else [found])]
    yield from (holder for holder in holders if isinstance(holder, dict))


def unnamed(dump: Manifest, removals: Sequence[Removal]) -> list[str]:
    """Return the removals that neither a gap nor a refusal to read the dump names."""
    try:
        gaps = load(io.BytesIO(json.dumps(dump).encode())).gaps
    except InputError:
        return []
    if removals and not gaps:
        return [one.what for one in removals]
    return [one.what for one in removals if not any(word in gap for gap in gaps for word in one.words)]


def planned(dump: Manifest, removals: Sequence[Removal], folder: Path) -> str:
    """Plan a dump; return what is wrong with how that ends, or nothing."""
    path = folder / "dump.json"
    path.write_text(json.dumps(dump), encoding="utf-8")
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(["plan", str(path), "--partial", "-q", "-t", "0.5", "--no-protection-costs"])
    if "Traceback" in err.getvalue() or "internal error" in err.getvalue():
        return err.getvalue()
    if code == 0 and removals and "warning: " not in err.getvalue():
        return "a plan without a warning"
    if code == 0 and removals and not out.getvalue().startswith("Incomplete dump: "):
        return f"a plan that begins with {out.getvalue().splitlines()[:1]}"
    return "" if code == 0 or len(err.getvalue().strip().splitlines()) >= 1 else f"exit code {code} without a word"


def main(arguments: Sequence[str] | None = None) -> int:
    """Mutilate dumps; exit 1 if one is planned without a warning that names what is missing."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.mutilated")
    parser.add_argument("dumps", nargs="+")
    parser.add_argument("--count", type=int, default=1000, help="how many mutilated dumps")
    parser.add_argument("--plan-every", type=int, default=10, help="plan each so-and-so-many-th of them; 0 plans none")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    sources = [objects(path) for path in given.dumps]
    wrong = plans = named = 0
    with TemporaryDirectory() as folder:
        for i in range(given.count):
            rng = random.Random(f"{given.seed}/{i}")
            dump, removals = mutilated(sources[i % len(sources)], rng)
            problems = unnamed(dump, removals)
            named += len(removals) - len(problems)
            if given.plan_every and i % given.plan_every == 0:
                plans += 1
                if said := planned(dump, removals, Path(folder)):
                    problems.append(said)
            if problems:
                wrong += 1
                print(f"{i} of {given.dumps[i % len(sources)]}: {[one.what for one in removals]}: {problems}")
    print(f"{given.count} mutilated dumps: {named} removals named, {plans} planned, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
