"""The operations platform once more, from its article: plain Python over the content of a platform file.

Nothing here uses the product. Amounts are cores and bytes as fractions, what is taken rounded up to thousandths and
whole bytes, what can be had rounded down; scores are floating point.
"""

from __future__ import annotations

import math
import statistics
from fractions import Fraction
from typing import Any

Content = dict[str, Any]
SUFFIXES = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "M": 10**6, "G": 10**9}
SUFFIXES |= {"m": Fraction(1, 1000), "u": Fraction(1, 10**6)}


def amount(written: Any) -> Fraction:
    """Read a quantity."""
    text = str(written)
    for suffix, factor in SUFFIXES.items():
        if text.endswith(suffix):
            return Fraction(text.removesuffix(suffix)) * factor
    return Fraction(text)


def unit(resource: str) -> Fraction:
    """Return what a resource is counted in."""
    return Fraction(1, 1000) if resource == "cpu" else Fraction(1)


def up(resource: str, exact: Fraction) -> Fraction:
    """Round an amount up."""
    return math.ceil(exact / unit(resource)) * unit(resource)


def share(number: float) -> Fraction:
    """Return a share as it is written."""
    return Fraction(str(number))


class Machines:
    """Machines with the instances on them, and an instance that looks for one."""

    def __init__(self, content: Content, placed: dict[str, str], new: str) -> None:
        self.content = content
        self.limits: Content = content.get("limits", {})
        self.shares: Content = content.get("shares", {"memory": 0.9})
        self.instances = {one["name"]: one for one in content["instances"]}
        self.machines = content["machines"]
        self.at = {one["name"]: one["machine"] for one in content["instances"] if one.get("machine")}
        self.now = {**self.at, **placed}
        self.new = self.instances[new]

    def total(self, machine: Content, resource: str) -> Fraction | None:
        """Return the total of a resource, if the machine has any."""
        found = {
            **machine.get("resources", {}),
            **{k: machine[k] for k in ("cpu", "memory", "network") if k in machine},
        }
        return amount(found[resource]) if resource in found else None

    def takes(self, instance: Content, resource: str) -> Fraction:
        """Return what an instance takes: measured, or one core and its maxmemory."""
        found = {**instance.get("resources", {}), **instance}
        if resource == "cpu":
            return up(resource, amount(found.get("cpu", 1)))
        if resource == "memory":
            return up(resource, amount(found["memory"] if "memory" in found else found["maxmemory"]))
        return up(resource, amount(found.get(resource, 0)))

    def held(self, machine: Content, *, today: bool = False) -> list[Content]:
        """Return the instances on a machine."""
        where = self.at if today else self.now
        return [one for name, one in self.instances.items() if where.get(name) == machine["name"]]

    def window(self, machine: Content, resource: str) -> list[float]:
        """Return the samples of the last hour before the last sample of all."""
        samples = self.content.get("samples", [])
        end = max((sample["time"] for sample in samples), default=0)
        return [
            sample["values"][resource]
            for sample in samples
            if sample["machine"] == machine["name"] and resource in sample["values"] and sample["time"] > end - 3600
        ]

    def measured(self, machine: Content, resource: str) -> Fraction:
        """Return what is used as the file has it: measured, by samples, or as the instances take."""
        own = sum((self.takes(one, resource) for one in self.held(machine, today=True)), Fraction(0))
        total = self.total(machine, resource) or Fraction(0)
        if resource in machine.get("used", {}):
            return max(own, up(resource, amount(machine["used"][resource])))
        values = self.window(machine, resource) if total else []
        if not values:
            return own
        nanos = Fraction(round(total * Fraction(statistics.fmean(values)) * 10**9), 10**9)
        return max(own, up(resource, nanos))

    def used(self, machine: Content, resource: str, *, new: bool = True) -> Fraction:
        """Return what would be used with the instance in place."""
        change = sum((self.takes(one, resource) for one in self.held(machine)), Fraction(0))
        change -= sum((self.takes(one, resource) for one in self.held(machine, today=True)), Fraction(0))
        return self.measured(machine, resource) + change + (self.takes(self.new, resource) if new else 0)

    def allocatable(self, machine: Content, resource: str) -> Fraction:
        """Return the share of the total that can be allocated."""
        exact = (self.total(machine, resource) or Fraction(0)) * share(self.shares.get(resource, 1))
        return math.floor(exact / unit(resource)) * unit(resource)

    # -- filters ----------------------------------------------------------------------------------------------

    def fits(self, machine: Content) -> bool:
        """Whether every filter admits the instance."""
        resources = {"cpu", "memory", "network", *self.new.get("resources", {})}
        for resource in resources:
            wanted, total = self.takes(self.new, resource), self.total(machine, resource)
            threshold = self.limits.get("usage", {}).get(resource, self.shares.get(resource, 1))
            if wanted and (total is None or self.used(machine, resource) > total * share(threshold)):
                return False
        return self._peaks(machine) and self._counted(machine)

    def _peaks(self, machine: Content) -> bool:
        for resource, threshold in self.limits.get("peak", {}).items():
            today = sum((self.takes(one, resource) for one in self.held(machine, today=True)), Fraction(0))
            peak = max(today, amount(machine.get("peak", {}).get(resource, 0)))
            since = self.used(machine, resource) - self.measured(machine, resource)
            total = self.total(machine, resource)
            if self.takes(self.new, resource) and (total is None or peak + since > total * share(threshold)):
                return False
        return True

    def _counted(self, machine: Content) -> bool:
        held = self.held(machine)
        most = self.limits.get("instances")
        if most is not None and len(held) + 1 > most:
            return False
        if "port" in self.new and any(one.get("port") == self.new["port"] for one in held):
            return False
        if "maxmemory" in self.limits and amount(self.new.get("maxmemory", 0)):
            sum_of = sum((amount(one.get("maxmemory", 0)) for one in (*held, self.new)), Fraction(0))
            if sum_of >= amount(machine["memory"]) * share(self.limits["maxmemory"]):
                return False
        if self.new["kind"] != "master":
            return True

        def own(one: Content) -> bool:
            return one["kind"] == "master" and one["cluster"] == self.new["cluster"]

        here = sum(own(one) for one in held) + 1
        every = sum(own(one) for one in self.instances.values())
        part = share(self.limits.get("masters", 1))
        return here == 1 or part == 1 or here < part * every

    # -- scores -----------------------------------------------------------------------------------------------

    def part(self, machine: Content, resource: str, *, new: bool = True) -> float:
        """Return the used share of what can be allocated; all of nothing is used."""
        offered = self.allocatable(machine, resource)
        return float(self.used(machine, resource, new=new) / offered) if offered else 1.0

    def least_utilized(self, machine: Content, weights: dict[str, float]) -> float:
        """Weighted mean of the free shares, none below 0."""
        free = {name: max(0.0, 1 - self.part(machine, name)) for name in weights}
        return 100 * sum(weights[name] * free[name] for name in weights) / sum(weights.values())

    def balanced_shares(self, machine: Content, weights: dict[str, float]) -> float:
        """``(1 − σ)·100``, in which weights do not matter."""
        return 100 * (1 - statistics.pstdev([min(1.0, self.part(machine, name)) for name in weights]))

    def target_utilization(self, machine: Content, metric: str, target: float) -> float:
        """The article's curve, of one resource."""
        u = 100 * self.part(machine, metric)
        if u <= target:
            return (100 - target) * u / target + target
        return target * (100 - u) / (100 - target) if u <= 100 else 0.0

    def load_risk(self, machine: Content, weights: dict[str, float]) -> float:
        """``min over resources of (1 − min(M + r + V, 1))·100``, in which weights do not matter."""
        return min(self._of_risk(machine, name) for name in weights)

    def _of_risk(self, machine: Content, name: str) -> float:
        offered = float(self.allocatable(machine, name))
        if not offered:
            return 0.0
        values = self.window(machine, name)
        whole = float(self.shares.get(name, 1))
        placed = float(self.used(machine, name) - self.measured(machine, name)) / offered
        mean = statistics.fmean(values) / whole if values else float(self.measured(machine, name)) / offered
        deviation = statistics.pstdev(values) / whole if values else 0.0
        return (1 - min(max(mean + placed + deviation, 0.0), 1.0)) * 100

    def variance(self, machine: Content, metric: str) -> Fraction:
        """Return the exact variance of a resource over the machines that have it, if the instance came to this one."""
        shares = [
            self.used(one, metric, new=one is machine) / offered
            for one in self.machines
            if (offered := self.allocatable(one, metric))
        ]
        mean = sum(shares, Fraction(0)) / max(1, len(shares))
        return sum(((value - mean) ** 2 for value in shares), Fraction(0)) / max(1, len(shares))
