"""What the server tells Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from stowplan.build_info import build_info
from stowplan.models.plan import Plan
from stowplan.serving.ledger import LedgerRecord, TokenLedger

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Seconds; a scheduler waits for one."""

WHY_DROPPED = ("full", "displaced", "handshake", "silent", "slow")
"""Why a connection is closed: there were too many, a newer one came, or it took too long."""


class Metrics:
    """Counters of one server; nothing global."""

    def __init__(self, plan: Plan, ledger: TokenLedger, clock: Callable[[], float]) -> None:
        self.registry = registry = CollectorRegistry()
        registry.register(_Build())
        self.requests = Counter("stowplan_requests", "Requests answered.", ["verb", "code"], registry=registry)
        self.seconds = Histogram(
            "stowplan_request_seconds", "Time to answer.", ["verb"], buckets=BUCKETS, registry=registry
        )
        self.bad = Counter("stowplan_bad_requests", "Requests that were not understood.", ["reason"], registry=registry)
        self.granted = Counter("stowplan_leases_granted", "Tokens handed out.", registry=registry)
        self.released = Counter("stowplan_leases_released", "Tokens taken back.", ["why"], registry=registry)
        self.steered = Counter("stowplan_answers", "Answers about pods.", ["verb", "token"], registry=registry)
        self.dropped = Counter(
            "stowplan_connections_dropped", "Connections closed by the server.", ["why"], registry=registry
        )
        for why in WHY_DROPPED:
            self.dropped.labels(why)
        self.current = Gauge(
            "stowplan_certificates_current", "1 if the certificates in use are those on the disk.", registry=registry
        )
        self.current.set(1)
        self.wave = Gauge("stowplan_wave_open", "Waves up to this one are handed out.", registry=registry)
        self.wave.set_function(lambda: ledger.open)
        expires = Gauge(
            "stowplan_plan_expires_timestamp_seconds", "When the plan expires.", ["plan"], registry=registry
        )
        expires.labels(plan.id).set(ledger.expires)
        self.registry.register(_Tokens(ledger, clock))

    def count(self, records: Iterable[LedgerRecord]) -> None:
        """Count changes of the ledger."""
        for record in records:
            if record.change == "grant":
                self.granted.inc()
            elif record.change == "release":
                self.released.labels(record.why).inc()

    def text(self) -> bytes:
        """Return all of it in the text format."""
        return generate_latest(self.registry)


class _Build(Collector):
    """Says which version serves."""

    def collect(self) -> Iterable[Metric]:
        return [build_info("serve")]


class _Tokens(Collector):
    """Counts tokens when asked to."""

    def __init__(self, ledger: TokenLedger, clock: Callable[[], float]) -> None:
        self.ledger, self.clock = ledger, clock

    def collect(self) -> Iterable[Metric]:
        found = GaugeMetricFamily("stowplan_tokens", "Tokens of the plan.", labels=["wave", "state"])
        for (wave, state), number in sorted(self.ledger.counts(self.clock()).items()):
            found.add_metric([str(wave), state], number)
        return [found]
