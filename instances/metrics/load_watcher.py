"""The document that load-watcher serves under ``/watcher``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stowplan.models.metrics import LoadMetrics, Metric
from stowplan.models.validation import refusal

Percent = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Metric(_Part):
    type: str = ""
    operator: str = ""
    value: Percent = 0.0


class _Node(_Part):
    metrics: tuple[_Metric, ...] | None = None


class _Window(_Part):
    end: int = 0


class _Data(_Part):
    nodes: Annotated[dict[str, _Node], Field(alias="NodeMetricsMap")]


class _Document(_Part):
    window: _Window = _Window()
    data: _Data


def parse_load_watcher(content: object, name: str) -> LoadMetrics:
    """Read a parsed document; see ``docs/load-aware.md`` for its form.

    Raises
    ------
    InputError
        With the field that cannot be used.
    """
    try:
        document = _Document.model_validate(content)
    except ValidationError as error:
        wrong = refusal(error, name)
        hint = "a load-watcher document has window and data.NodeMetricsMap"
        raise replace(wrong, problem=f"{wrong.problem}; {hint}") from None
    nodes = {
        node: tuple(Metric(metric.type, metric.operator, metric.value) for metric in entry.metrics or ())
        for node, entry in document.data.nodes.items()
    }
    return LoadMetrics(nodes, document.window.end, name)
