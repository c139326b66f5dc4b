"""Random cases: how many are tried, what a failure leaves behind, and how many of them have to be to the point.

`cases` is hypothesis' ``given`` with the number of cases. They are the same whenever the same test files are run:
hypothesis draws some numbers from the constants of the modules that are loaded. ``STOWPLAN_SEEDS=500`` asks for at
least so many from every test, and for other ones at each run. The smallest case that fails is printed as JSON and saved
to a file that the message names; `load` reads it back.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from coverage import Coverage
from hypothesis import event, given, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException

from stowplan.models import problem as vocabulary
from stowplan.models.manifest import manifest
from stowplan.models.snapshot import Snapshot

WANTED = int(os.environ.get("STOWPLAN_SEEDS", "0"))
FOLDER = Path(".hypothesis") / "failing"
PRINTED = 8_000
"""Characters of a failing case that are printed; the file has all of them."""

MEASURED = 2
"""Cases of one test that coverage is measured on: those that follow run the same lines, and measuring takes time."""

KINDS = {
    "nodes": ("v1", "Node"),
    "pods": ("v1", "Pod"),
    "namespaces": ("v1", "Namespace"),
    "services": ("v1", "Service"),
    "replica_sets": ("apps/v1", "ReplicaSet"),
    "stateful_sets": ("apps/v1", "StatefulSet"),
    "deployments": ("apps/v1", "Deployment"),
    "persistent_volumes": ("v1", "PersistentVolume"),
    "persistent_volume_claims": ("v1", "PersistentVolumeClaim"),
    "storage_classes": ("storage.k8s.io/v1", "StorageClass"),
    "csi_nodes": ("storage.k8s.io/v1", "CSINode"),
    "pod_disruption_budgets": ("policy/v1", "PodDisruptionBudget"),
}
"""Objects that random clusters are made of."""

_counted: Counter[str] = Counter()
_TRIED = "cases"


def cases(
    number: int, /, *, at_least: dict[str, int] | None = None, **strategies: st.SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Try a test on drawn cases.

    Parameters
    ----------
    number
        How many.
    at_least
        How often the test has to say `count` for each of these names over all cases: a case in which there is nothing
        to see proves nothing.
    strategies
        By the name of the argument, as for ``given``.
    """

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        measuring: Coverage | None = None

        @functools.wraps(test)
        def one(*, folded: _Folded, **more: Any) -> None:
            _counted[_TRIED] += 1
            if _counted[_TRIED] == MEASURED + 1 and measuring is not None:
                measuring.stop()
            try:
                test(**more, **folded.case)
            except HypothesisException:
                raise
            except Exception as error:
                _report(error, folded.case)
                raise

        asked = [name for name in inspect.signature(test).parameters if name not in strategies]
        by_name = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in (*asked, "folded")]
        one.__signature__ = inspect.Signature(by_name)  # type: ignore[attr-defined]
        every = settings(max_examples=max(number, WANTED), deadline=None)(given(folded=_folded(strategies))(one))

        @functools.wraps(every)
        def all_of_them(**more: Any) -> None:
            nonlocal measuring
            _counted.clear()
            measuring = Coverage.current()
            try:
                every(**more)
            finally:
                if measuring is not None and _counted[_TRIED] > MEASURED:
                    measuring.start()
            for name, least in (at_least or {}).items():
                assert _counted[name] >= least, f"{name}: {_counted[name]} times, which should be at least {least}"

        return all_of_them

    return decorate


def count(name: str, times: int | np.integer[Any] | np.bool = 1) -> None:
    """Note that a case was to the point; ``pytest --hypothesis-show-statistics`` says in how many it was."""
    if times:
        _counted[name] += int(times)
        event(name)


class _Folded:
    """A case that hypothesis prints in a few words: the message has it as JSON, and so has the saved file."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.case = case

    def __repr__(self) -> str:
        said = json.dumps(encoded(self.case))
        return said if len(said) < 80 else "<see the case above>"


@st.composite
def _folded(draw: st.DrawFn, strategies: dict[str, st.SearchStrategy[Any]]) -> _Folded:
    return _Folded({name: draw(strategy) for name, strategy in strategies.items()})


def _report(error: Exception, case: dict[str, Any]) -> None:
    """Save a case that failed, and say so where the failure is told."""
    name = re.sub(r"[^\w.\[\]-]+", "-", os.environ.get("PYTEST_CURRENT_TEST", "case").partition(" (")[0])
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.json"
    written = {key: encoded(value) for key, value in case.items()}
    path.write_text(json.dumps(written, indent=1), encoding="utf-8")
    printed = json.dumps(written)
    error.add_note(f"The case is saved in {path.resolve()}:\n{printed[:PRINTED]}{'…' * (len(printed) > PRINTED)}")


def manifests(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot as ``kubectl get -o json`` would print it, so that every command can read it."""
    items = []
    for name, (version, kind) in KINDS.items():
        items += [{"apiVersion": version, "kind": kind, **manifest(item)} for item in getattr(snapshot, name)]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def encoded(value: Any) -> Any:
    """Return what JSON can say of a case: problems field by field, anything unknown as it prints itself."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Snapshot):
        return manifests(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {type(value).__name__: {f.name: encoded(getattr(value, f.name)) for f in dataclasses.fields(value)}}
    if isinstance(value, list | tuple | set | frozenset):
        return [encoded(item) for item in value]
    if isinstance(value, dict):
        return {str(key): encoded(item) for key, item in value.items()}
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def load(path: Path) -> dict[str, Any]:
    """Read a saved case back: problems and their parts as they were, clusters as manifests."""
    read: dict[str, Any] = _decoded(json.loads(path.read_text(encoding="utf-8")))
    return read


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    (name, content), *more = value.items() or [("", None)]
    model = getattr(vocabulary, name, None)
    if more or not dataclasses.is_dataclass(model) or not isinstance(model, type):
        return {key: _decoded(item) for key, item in value.items()}
    return model(**{key: _field(model, key, _decoded(item)) for key, item in content.items()})


def _field(model: type, key: str, value: Any) -> Any:
    """Return a list as what the field of a problem is: an array of numbers, or a tuple."""
    wanted = str(next(f.type for f in dataclasses.fields(model) if f.name == key))
    if not isinstance(value, list):
        return value
    if wanted.startswith("tuple"):
        return tuple(np.array(item) if isinstance(item, list) else item for item in value)
    return np.array(value, dtype=bool if wanted == "Bools" else np.int64)
