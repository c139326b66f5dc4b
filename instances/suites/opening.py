"""From what the user names to a suite: a folder, a file, an archive, or a suite that is generated."""

from __future__ import annotations

import gzip
import re
import tarfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stowplan.instances.documents import GZIP, read_file
from stowplan.instances.openb import NODE_COLUMNS, POD_COLUMNS
from stowplan.instances.suites.openb import DeviceInstance
from stowplan.instances.suites.packing import PackingInstance
from stowplan.instances.suites.priority_matters import generate_clusters, read_clusters
from stowplan.instances.suites.priority_matters.instance import ClusterInstance, cell
from stowplan.instances.suites.published import (
    packing_references,
    plain,
    reassignment_references,
)
from stowplan.instances.suites.roadef.instance import ASSIGNMENT, MODEL, reassignment_instance
from stowplan.instances.suites.suite import Instance, Kind, Reference, Suite, natural
from stowplan.instances.suites.triplets import TripletInstance
from stowplan.models.errors import InputError

TRIPLETS, PRIORITIES = "triplets", "priority-matters"
GENERATED = {TRIPLETS: "triplets:60_3", PRIORITIES: "priority-matters:nodes4_pods16_prio4_util100"}
"""Suites that are generated, and the full name of each."""

KNOWN = (
    "ROADEF/EURO 2012 (model_*.txt and assignment_*.txt), vector bin packing (*.vbp, also in a tar.gz), "
    "Priority-Matters (*.jsonl), openb (its CSV lists)"
)


@dataclass(frozen=True, slots=True)
class _Source:
    """A file, or a file inside an archive."""

    path: Path
    member: str = ""
    data: bytes = b""

    @property
    def name(self) -> str:
        return f"{self.path}/{self.member}" if self.member else str(self.path)

    def read(self) -> bytes:
        return self.data if self.member else read_file(self.path)


def open_suite(name: str, *, count: int = 10, seed: int = 0) -> Suite:
    """Open a suite.

    Parameters
    ----------
    name
        A folder, a file or an archive, recognized by its contents; or the name of a suite that is generated:
        ``triplets:<items>_<dimensions>`` or ``priority-matters:nodes<n>_pods<p>_prio<k>_util<percent>``.
    count, seed
        How many instances of a generated suite there are, and what makes them different.

    Raises
    ------
    InputError
        If there is nothing that is known, or several formats at once.
    """
    path = Path(name)
    kind = name.partition(":")[0]
    if kind in GENERATED and not path.exists():
        return _generated(kind, GENERATED.get(name, name), count, seed)
    if not path.exists():
        raise InputError(
            f"no such file or folder, and no suite that can be generated: {', '.join(GENERATED)}", file=name
        )
    found: dict[Kind, list[_Source]] = defaultdict(list)
    for source in _sources(path):
        if (recognized := _kind(source)) is not None:
            found[recognized].append(source)
    if not found:
        raise InputError(f"contains no instance of a known format: {KNOWN}", file=name)
    if len(found) > 1:
        raise InputError(f"contains several formats ({', '.join(sorted(found))}); name a folder of one", file=name)
    ((kind_found, sources),) = found.items()
    instances = list(_READERS[kind_found](path, sources))
    # Clusters of a cell stay in the order of the file, which is that of the published seed lists.
    in_order = kind_found is Kind.PRIORITIES
    instances.sort(key=lambda instance: natural(instance.group if in_order else instance.name))
    return Suite(kind_found, path.resolve().name, tuple(instances))


def _generated(kind: str, name: str, count: int, seed: int) -> Suite:
    shape = name.partition(":")[2]
    if kind == TRIPLETS:
        numbers = re.fullmatch(r"([0-9]+)_([0-9]+)", shape)
        if not numbers or int(numbers[1]) % 3 or not int(numbers[1]) or not int(numbers[2]):
            raise InputError("must be triplets:<items>_<dimensions>, items a multiple of 3", file=name)
        items, dimensions = int(numbers[1]), int(numbers[2])
        made: list[Instance] = [
            TripletInstance(f"{shape}_{seed + i}", shape, items, dimensions, seed + i) for i in range(count)
        ]
        return Suite(Kind.PACKING, name, tuple(made))
    numbers_of_cell = cell(shape)
    if not numbers_of_cell or not all(numbers_of_cell.values()):
        raise InputError(f"must be like {GENERATED[PRIORITIES]}", file=name)
    clusters = generate_clusters(seed, count, **numbers_of_cell)
    return Suite(Kind.PRIORITIES, name, tuple(ClusterInstance(f"{shape}/{c.seed}", shape, c) for c in clusters))


# -- looking for files ---------------------------------------------------------------------------------------------


def _sources(path: Path) -> Iterator[_Source]:
    files = sorted(f for f in path.rglob("*") if f.is_file()) if path.is_dir() else [path]
    for file in files:
        if file.name.endswith((".tar.gz", ".tgz", ".tar")):
            yield from _members(file)
        else:
            yield _Source(file)


def _members(archive: Path) -> Iterator[_Source]:
    try:
        with tarfile.open(archive) as members:
            for member in members:
                content = members.extractfile(member) if member.isfile() and member.name.endswith(".vbp") else None
                if content is not None:
                    yield _Source(archive, member.name, content.read())
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise InputError(f"is a damaged archive: {error}", file=str(archive)) from None


def _kind(source: _Source) -> Kind | None:
    """Recognize a format; files of numbers by their names, since all look alike, others by their beginning."""
    name = (source.member or source.path.name).removesuffix(".gz")
    if name.endswith(".vbp"):
        return Kind.PACKING
    if name.startswith((MODEL, ASSIGNMENT)) and name.endswith(".txt"):
        return Kind.REASSIGNMENT
    head = _head(source.path)
    if head.lstrip().startswith(b"{") and b'"replicasets"' in head:
        return Kind.PRIORITIES
    return Kind.DEVICES if _is_list(head, NODE_COLUMNS) or _is_list(head, POD_COLUMNS) else None


def _head(path: Path) -> bytes:
    """Return the first bytes of a file, unpacked; none if it cannot be read, since it may be anything.

    Raises
    ------
    InputError
        If it is a damaged archive: its contents are unknown.
    """
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError:
        return b""
    if not head.startswith(GZIP):
        return head
    try:
        with gzip.open(path, "rb") as content:
            return content.read(4096)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"is a damaged gzip file: {error}", file=str(path)) from None


def _is_list(head: bytes, columns: Sequence[str]) -> bool:
    first = head.partition(b"\n")[0].decode("utf-8", "replace").strip().split(",")
    return tuple(first[: len(columns)]) == tuple(columns)


def _around(path: Path) -> list[Path]:
    """Return the folders in which tables of reference values are looked for, the nearest first."""
    here = path.resolve()
    return [here, here.parent, here.parent.parent]


# -- reading formats -----------------------------------------------------------------------------------------------


def _reassignments(path: Path, sources: Sequence[_Source]) -> Iterator[Instance]:
    if path.is_file() and path.name.startswith(ASSIGNMENT):
        raise InputError(f"is an assignment; name its {MODEL}*.txt", file=str(path))
    for source in sources:
        if source.path.name.startswith(MODEL):
            known = reassignment_references(_around(source.path.parent))
            stem = source.path.name.removeprefix(MODEL).partition(".")[0]
            yield reassignment_instance(source.path, known.get(plain(stem), Reference()))


def _packings(path: Path, sources: Sequence[_Source]) -> Iterator[Instance]:
    known = packing_references(_around(path))
    for source in sources:
        place = (
            Path(source.member) if source.member else source.path.relative_to(path if path.is_dir() else path.parent)
        )
        if place.is_absolute() or ".." in place.parts:
            raise InputError("is not a path inside the archive", file=source.name)
        stem = place.name.removesuffix(".gz").removesuffix(".vbp")
        # Names repeat from set to set; where the path names the set, it decides.
        sets = [name for name in known if stem in known[name]]
        named = [name for name in sets if name.lower() in source.name.lower()]
        chosen = named or sets
        reference = known[chosen[0]][stem] if len(chosen) == 1 else Reference()
        name, group = str(place.with_name(stem)), str(place.parent)
        yield PackingInstance(name, "" if group == "." else group, source.name, source.read(), reference)


def _clusters(path: Path, sources: Sequence[_Source]) -> Iterator[Instance]:
    for source in sources:
        group = source.path.name.removesuffix(".gz").removesuffix(".jsonl")
        for cluster in read_clusters(str(source.path), source.read()):
            yield ClusterInstance(f"{group}/{cluster.seed}", group, cluster)


def _device_lists(path: Path, sources: Sequence[_Source]) -> Iterator[Instance]:
    folder = path if path.is_dir() else path.parent
    lists = [s.path for s in (sources if path.is_dir() else map(_Source, sorted(folder.iterdir()))) if s.path.is_file()]
    nodes = [p for p in lists if _is_list(_head(p), NODE_COLUMNS)]
    if len(nodes) > 1:  # the published experiments use the nodes with GPUs alone
        nodes = [p for p in nodes if "gpu_node" in p.name] or nodes
    if len(nodes) != 1:
        raise InputError(f"needs one node list of openb beside the pod lists; found {len(nodes)}", file=str(folder))
    for source in sources:
        if _is_list(_head(source.path), POD_COLUMNS):
            name = source.path.name.removesuffix(".gz").removesuffix(".csv")
            yield DeviceInstance(name, name, nodes[0], source.path, Reference())


_READERS: dict[Kind, Callable[[Path, Sequence[_Source]], Iterator[Instance]]] = {
    Kind.REASSIGNMENT: _reassignments,
    Kind.PACKING: _packings,
    Kind.PRIORITIES: _clusters,
    Kind.DEVICES: _device_lists,
}
