"""A model and its initial assignment, as files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stowplan.instances.documents import read_file
from stowplan.instances.suites.roadef.checker import account
from stowplan.instances.suites.roadef.files import Model, read_assignment, read_model, write_assignment
from stowplan.instances.suites.roadef.reassignment import Reassignment, reassignment
from stowplan.instances.suites.suite import Instance, Reference, Verdict
from stowplan.models.arrays import Ints
from stowplan.models.errors import InputError
from stowplan.models.problem import Placement, Problem

MODEL, ASSIGNMENT = "model_", "assignment_"
"""What the names of the challenge's files begin with."""


@dataclass(frozen=True)
class ReassignmentInstance(Instance):
    """Two files, ``model_<name>.txt`` and ``assignment_<name>.txt``, plain or gzip."""

    name: str
    group: str
    model: Path
    initial: Path
    known: Reference

    @property
    def reference(self) -> Reference:
        """What others found."""
        return self.known

    def state(self) -> StatedReassignment:
        """Read both files, and state the model as a problem."""
        model, initial = self._read()
        return StatedReassignment(reassignment(model, initial, file=str(self.initial)))

    def check(self, file: str, data: bytes) -> Verdict:
        """Check an assignment by the challenge's statement."""
        model, initial = self._read()
        result = account(model, initial, read_assignment(file, data, model))
        return Verdict((result.total,), tuple(result.violations))

    def _read(self) -> tuple[Model, Ints]:
        model = read_model(str(self.model), read_file(self.model))
        return model, read_assignment(str(self.initial), read_file(self.initial), model)


@dataclass(frozen=True, slots=True)
class StatedReassignment:
    """A model as a problem, and assignments as the challenge wants them."""

    stated: Reassignment

    @property
    def problem(self) -> Problem:
        """What engines solve."""
        return self.stated.problem

    def write(self, placement: Placement) -> str:
        """Write a placement as an assignment."""
        return write_assignment(self.stated.assignment(placement))


def reassignment_instance(model: Path, reference: Reference) -> ReassignmentInstance:
    """Return the instance that a model file belongs to.

    Raises
    ------
    InputError
        If there is no initial assignment beside it.
    """
    rest = model.name.removeprefix(MODEL)
    stem = rest.removesuffix(".gz").removesuffix(".txt")
    for suffix in (rest, f"{stem}.txt", f"{stem}.txt.gz"):
        initial = model.with_name(ASSIGNMENT + suffix)
        if initial.is_file():
            return ReassignmentInstance(stem, model.resolve().parent.name, model, initial, reference)
    raise InputError(f"needs {ASSIGNMENT}{stem}.txt (plain or .gz) beside it", file=str(model))
