"""Which stowplan the metrics are of."""

from __future__ import annotations

from importlib.metadata import version

from prometheus_client.metrics_core import GaugeMetricFamily


def build_info(command: str) -> GaugeMetricFamily:
    """Return ``stowplan_build_info``, which is 1 and has the version as a label."""
    found = GaugeMetricFamily("stowplan_build_info", "Version of stowplan, by command.", labels=["version", "command"])
    found.add_metric([version("stowplan"), command], 1)
    return found
