"""The text format of Prometheus, written and read. Only runs that leave such a file need its client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from stowplan.build_info import build_info
from stowplan.run_metrics.families import FAMILIES


def written(command: str, values: Mapping[tuple[str, str], float]) -> bytes:
    """Return all metrics of a command as text.

    Parameters
    ----------
    values
        By name of the metric and value of its label.
    """
    registry = CollectorRegistry()
    registry.register(_Families(command, values))
    return generate_latest(registry)


def read(text: str, command: str) -> dict[tuple[str, str], float]:
    """Return the values that a file holds.

    Raises
    ------
    ValueError
        If it does not hold the metrics of this command.
    """
    prefix = f"stowplan_{command}_"
    labels = {family.name: family.label for family in FAMILIES[command]}
    known = {(family.name, value) for family in FAMILIES[command] for value in family.values}
    values, commands = {}, set()
    for found in text_string_to_metric_families(text):
        for sample in found.samples:
            if sample.name == "stowplan_build_info":
                commands.add(sample.labels.get("command"))
            name = sample.name.removeprefix(prefix)
            key = (name, sample.labels.get(labels.get(name, ""), ""))
            if sample.name.startswith(prefix) and key in known:
                values[key] = float(sample.value)
    if commands != {command}:
        raise ValueError(f"must hold metrics of stowplan {command}, or be a new file")
    return values


@dataclass(frozen=True, eq=False)
class _Families(Collector):
    command: str
    values: Mapping[tuple[str, str], float]

    def collect(self) -> Iterable[Metric]:
        yield build_info(self.command)
        for family in FAMILIES[self.command]:
            made = CounterMetricFamily if family.counts else GaugeMetricFamily
            labels = [family.label] if family.label else []
            found = made(f"stowplan_{self.command}_{family.name}", family.text, labels=labels)
            for value in family.values:
                found.add_metric([value] if family.label else [], self.values[family.name, value])
            yield found
