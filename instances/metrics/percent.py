"""Figures in a simple file: percentages by node, written by hand or by a script."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from stowplan.models import metrics
from stowplan.models.metrics import LoadMetrics, Metric
from stowplan.models.validation import refusal

Percent = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)


class _Usage(_Part):
    average: Percent | None = None
    latest: Percent | None = None
    std: Percent | None = None

    @model_validator(mode="before")
    @classmethod
    def _number_is_average(cls, value: object) -> object:
        return {"average": value} if isinstance(value, int | float) else value

    def figures(self, kind: str) -> Iterator[Metric]:
        """Yield what is there, the average after the latest value, as load-watcher's readers prefer it."""
        for operator, value in (
            (metrics.LATEST, self.latest),
            (metrics.AVERAGE, self.average),
            (metrics.DEVIATION, self.std),
        ):
            if value is not None:
                yield Metric(kind, operator, value)


class _Node(_Part):
    cpu: _Usage = _Usage()
    memory: _Usage = _Usage()


class _File(_Part):
    measured_at: datetime | None = None
    nodes: dict[str, _Node]


def parse_percent(content: object, name: str) -> LoadMetrics:
    """Read a parsed file; see ``docs/load-aware.md`` for its form.

    Raises
    ------
    InputError
        With the field that cannot be used.
    """
    try:
        file = _File.model_validate(content)
    except ValidationError as error:
        raise refusal(error, name) from None
    nodes = {
        node: (*entry.cpu.figures(metrics.CPU), *entry.memory.figures(metrics.MEMORY))
        for node, entry in file.nodes.items()
    }
    return LoadMetrics(nodes, _seconds(file.measured_at), name)


def _seconds(moment: datetime | None) -> int | None:
    if moment is None:
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
