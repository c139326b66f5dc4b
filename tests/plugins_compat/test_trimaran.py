"""Trimaran's scores: equal to recordings of the real plugins, and to what their definitions say."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stowplan.models.errors import InputError
from stowplan.models.metrics import AVERAGE, CPU, DEVIATION, LATEST, MEMORY, LoadMetrics, Metric
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.scheduler import schedule
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.plugins.trimaran.arithmetic import power, rounded
from stowplan.plugins_compat.plugins.trimaran.beta import Beta, fit, incomplete_beta
from stowplan.plugins_compat.plugins.trimaran.low_risk_over_commitment import load_risk
from stowplan.plugins_compat.plugins.trimaran.target_load_packing import TargetLoadPackingArgs
from stowplan.plugins_compat.profiles import make_profiles
from stowplan.plugins_compat.release import K36
from tests.support.clusters import Manifest, node, pod, snapshot

NOON = 1767268800  # 2026-01-01T12:00:00Z

PACKING, BALANCING, COMMITMENT = "TargetLoadPacking", "LoadVariationRiskBalancing", "LowRiskOverCommitment"


# -- clusters by hand -----------------------------------------------------------------------------------------


def machine(name: str, cpu: str = "4") -> Manifest:
    """Return a node that may give all that it has."""
    manifest = node(name, cpu=cpu)
    manifest["status"]["capacity"] = manifest["status"]["allocatable"]
    return manifest


def load(*figures: tuple[str, str, float], end: int | None = None) -> LoadMetrics:
    """Return metrics of node n1."""
    return LoadMetrics({"n1": tuple(Metric(*figure) for figure in figures)}, end)


def limited(manifest: Manifest, **limits: str) -> Manifest:
    manifest["spec"]["containers"][0]["resources"]["limits"] = limits
    return manifest


def cluster(metrics: LoadMetrics | None, *pods: Manifest, nodes: int = 1) -> Snapshot:
    made = snapshot(nodes=[machine(f"n{i}") for i in range(1, nodes + 1)], pods=list(pods))
    return replace(made, metrics=metrics)


def profile_of(plugin: str, args: dict[str, Any]) -> Any:
    """Return a profile that scores with one plugin only."""
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"score": {"enabled": [{"name": plugin}], "disabled": [{"name": "*"}]}},
                "pluginConfig": [{"name": plugin, "args": args}],
            }
        ],
    }
    return next(iter(make_profiles(content, K36, "first").values()))


def running(made: Snapshot, plugin: str, **args: Any) -> Framework:
    state = ClusterState(made, K36)
    state.fill(bound for bound in made.pods if bound.node_name)
    return Framework(profile_of(plugin, args), state)


def scores(framework: Framework, manifest: Manifest) -> list[int]:
    (incoming,) = snapshot(pods=[manifest]).pods
    (found,) = framework.run_scores(framework.cycle(incoming), np.arange(framework.state.size)).values()
    listed: list[int] = found.tolist()
    return listed


# -- metrics --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plugin", [PACKING, BALANCING, COMMITMENT])
def test_a_node_without_metrics_scores_0(plugin: str) -> None:
    known = load((CPU, AVERAGE, 10), (MEMORY, AVERAGE, 10))
    assert scores(running(cluster(known, nodes=2), plugin), pod("p"))[1] == 0
    assert scores(running(cluster(known, nodes=2), plugin), pod("p"))[0] > 0
    assert scores(running(cluster(None, nodes=2), plugin), pod("p")) == [0, 0]
    assert scores(running(cluster(LoadMetrics({"n1": ()})), plugin), pod("p")) == [0]


def test_packing_takes_the_last_figure_and_the_others_prefer_averages() -> None:
    """10 % against 30 %. Packing with nothing predicted and a target of 40: 60·p/40 + 40; balancing: 100 − p/2."""
    nothing = limited(pod("p", cpu="", memory=""), cpu="0")
    both = load((CPU, AVERAGE, 10), (CPU, LATEST, 30))
    assert scores(running(cluster(both), PACKING), nothing) == [85]
    assert scores(running(cluster(both), BALANCING), nothing) == [95]


# -- TargetLoadPacking ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("used", "score"), [(0, 50), (25, 75), (50, 100), (75, 25), (100, 0), (100.1, 0)])
def test_packing_rises_to_the_target_and_falls_beyond_it(used: float, score: int) -> None:
    """With a target of 50: 25 is half way from 50 to 100, 75 half way from 50 to 0."""
    framework = running(cluster(load((CPU, AVERAGE, used))), PACKING, targetUtilization=50, defaultRequests={"cpu": 0})
    assert scores(framework, pod("p", cpu="")) == [score]


ONLY_THE_NEW, BOTH = 94, 18
"""Of 4 cores 5 % are measured, and 1.25 cores predicted for the new pod: 36.25 % of a target of 40 score 94.375.

With 1.5 cores predicted for a bound pod of 1 core that is not measured yet it is 73.75 %: 40 · 26.25 / 60 = 17.5.
"""


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("2026-01-01T11:59:00Z", NOON, ONLY_THE_NEW),
        ("2026-01-01T11:59:01Z", NOON, BOTH),
        ("2026-01-01T12:00:01Z", NOON, BOTH),
        ("2026-01-01T12:00:01Z", None, ONLY_THE_NEW),
        (None, NOON, ONLY_THE_NEW),
        (None, 0, BOTH),
    ],
)
def test_pods_bound_less_than_60_s_before_the_end_of_the_metrics_are_predicted(
    start: str | None, end: int | None, expected: int
) -> None:
    bound = pod("old", "n1", cpu="1")
    bound["status"]["startTime"] = start
    framework = running(cluster(load((CPU, AVERAGE, 5), end=end), bound), PACKING)
    assert scores(framework, limited(pod("new", cpu=""), cpu="1250m")) == [expected]


def test_pods_placed_by_the_simulation_are_predicted_and_pods_that_left_take_theirs_along() -> None:
    framework = running(cluster(load((CPU, AVERAGE, 5)), pod("old", "n1", cpu="1")), PACKING)
    state, new = framework.state, limited(pod("new", cpu=""), cpu="1250m")
    placed = list(schedule(framework, snapshot(pods=[pod("next", cpu="1")]).pods))
    assert [decision.node for decision in placed] == [0]
    assert scores(framework, new) == [BOTH]
    signature = state.signatures.of(state.snapshot.pods[0])
    state.forget(signature, 0)
    assert scores(framework, new) == [ONLY_THE_NEW]  # one came, one like it left
    state.forget(signature, 0)
    assert scores(framework, limited(pod("idle", cpu=""), cpu="0")) == [40]  # less than nothing is nothing


def test_a_node_without_capacity_counts_as_idle() -> None:
    made = replace(snapshot(nodes=[node("n1")]), metrics=load((CPU, AVERAGE, 90)))
    assert scores(running(made, PACKING), pod("p")) == [40]
    assert scores(running(replace(made, metrics=load((MEMORY, AVERAGE, 90))), PACKING), pod("p")) == [0]


# -- LoadVariationRiskBalancing -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("margin", "sensitivity", "score"),
    [
        (1, 1, 57),  # μ = (20 + 25) % of 4 cores, σ = 40 %: 100 − 85 / 2 = 57.5, as floats a bit less
        (0, 1, 78),  # 100 − 45 / 2 = 77.5
        (2, 1, 38),  # 100 − (45 + 80) / 2 = 37.5
        (1, 2, 46),  # √0.4 = 63.2 %
        (1, 0.5, 70),  # 0.4² = 16 %
        (1, 0, 78),  # a variation below 1, raised infinitely, is nothing
        (-1, -1, 57),
        (None, None, 57),
    ],
)
def test_balancing_weighs_the_average_and_the_variation(
    margin: float | None, sensitivity: float | None, score: int
) -> None:
    made = cluster(load((CPU, AVERAGE, 20), (CPU, DEVIATION, 40)))
    framework = running(made, BALANCING, safeVarianceMargin=margin, safeVarianceSensitivity=sensitivity)
    assert scores(framework, pod("p", cpu="1")) == [score]


def test_balancing_scores_by_the_worse_of_two_measured_resources() -> None:
    """CPU: 25 % requested. Memory: 1 of 8 GiB requested, 75 % measured."""
    pod_of_1 = pod("p", cpu="1", memory="1Gi")
    assert scores(running(cluster(load((CPU, AVERAGE, 0))), BALANCING), pod_of_1) == [88]
    assert scores(running(cluster(load((CPU, AVERAGE, 0), (MEMORY, AVERAGE, 75))), BALANCING), pod_of_1) == [56]


# -- LowRiskOverCommitment ------------------------------------------------------------------------------------


def test_commitment_weighs_limits_beyond_the_node() -> None:
    """2 cores requested and limits of 6 on a node with 4: half of what is promised beyond the requests is not there."""
    idle = cluster(load((CPU, AVERAGE, 0)))
    asks = limited(pod("p", cpu="2", memory=""), cpu="6")
    assert scores(running(idle, COMMITMENT), asks) == [75]
    assert scores(running(idle, COMMITMENT, riskLimitWeights={"cpu": 1}), asks) == [50]
    assert scores(running(idle, COMMITMENT, riskLimitWeights={"cpu": 7}), asks) == [75]
    assert scores(running(idle, COMMITMENT), pod("nothing", cpu="", memory="")) == [0]


def test_commitment_notices_pods_that_come_and_go() -> None:
    """A steady load of 50 %, with 1 of 4 cores requested and limits of 4: it is surely beyond what was requested."""
    bound = limited(pod("old", "n1", cpu="1", memory=""), cpu="4")
    framework = running(cluster(load((CPU, AVERAGE, 50)), bound), COMMITMENT, riskLimitWeights={"cpu": 0})
    asks = pod("p", cpu="100m", memory="")
    assert scores(framework, asks) == [0]
    (twin,) = snapshot(pods=[bound]).pods
    framework.state.assume(framework.state.signatures.of(twin), 0)
    assert scores(framework, asks) == [100]
    framework.state.forget(framework.state.signatures.of(twin), 0)
    assert scores(framework, asks) == [0]


def test_load_risk_of_a_symmetric_load_is_one_half_at_its_mean() -> None:
    assert load_risk(0.5, 0.1, 2000, 8000, 4000) == pytest.approx(0.5)
    assert load_risk(0.5, 0.1, 2000, 2000, 4000) == 0  # given that it stays within what was requested
    assert load_risk(0.5, 0.1, 0, 0, 4000) == 0
    assert load_risk(0.5, 0.0, 1999, 8000, 4000) == 1
    assert load_risk(0.0, 0.1, 0, 8000, 4000) == 0
    assert load_risk(0.5, 0.1, 0, 0, 0) == 0


# -- mathematics ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [0.01, 0.2, 0.5, 0.77, 0.97, 0.999])
@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 3), (7, 1), (1, 9), (30, 60), (90, 5), (120, 130), (400, 350)])
def test_the_beta_function_of_whole_parameters_is_a_binomial_sum(a: int, b: int, x: float) -> None:
    """``I_x(a, b)`` is the probability of at least ``a`` successes in ``a + b − 1`` trials."""
    n = a + b - 1
    if x > a / (a + b):  # sum the smaller tail
        expected = 1 - math.fsum(math.comb(n, j) * x**j * (1 - x) ** (n - j) for j in range(a))
    else:
        expected = math.fsum(math.comb(n, j) * x**j * (1 - x) ** (n - j) for j in range(a, n + 1))
    assert incomplete_beta(a, b, x) == pytest.approx(expected, rel=1e-10, abs=1e-14)


@pytest.mark.parametrize(("a", "b", "x"), [(0.3, 0.7, 0.2), (0.01, 0.02, 0.6), (2.5, 0.4, 0.99), (55.5, 1.25, 0.9)])
def test_both_tails_make_a_whole(a: float, b: float, x: float) -> None:
    assert incomplete_beta(a, b, x) + incomplete_beta(b, a, 1 - x) == pytest.approx(1, abs=1e-13)


def test_the_arcsine_distribution() -> None:
    """``I_x(½, ½) = 2/π · arcsin √x``."""
    for x in (0.001, 0.1, 0.5, 0.9, 0.999):
        assert incomplete_beta(0.5, 0.5, x) == pytest.approx(2 / math.pi * math.asin(math.sqrt(x)), rel=1e-12)


@pytest.mark.parametrize(("mean", "deviation"), [(0.3, 0.1), (0.9, 0.05), (0.01, 0.02)])
def test_a_fit_has_the_moments_it_was_asked_for(mean: float, deviation: float) -> None:
    found = fit(mean, deviation)
    assert found is not None
    total = found.a + found.b
    assert found.a / total == pytest.approx(mean)
    assert math.sqrt(found.a * found.b / (total**2 * (total + 1))) == pytest.approx(deviation)


def test_what_no_distribution_fits() -> None:
    assert fit(0.5, 0.5) is None
    assert fit(0.5, 0.6) is None
    lost = fit(0.5, 1e-10)  # the variance is smaller than the last bit of the mean's square
    assert lost is not None
    assert lost.below(0.9) == 0
    assert Beta(1e9, 1e9).below(1e-300) == 0


def test_rounding_and_powers_are_those_of_go() -> None:
    values = np.array([0.49999999999999994, 0.5, 1.5, 2.5, -0.5, -2.5, 99.5])
    assert rounded(values).tolist() == [0, 1, 2, 3, -1, -3, 100]
    assert power(0.3, 2) == 0.3 * 0.3
    assert power(0.3, 0.5) == math.sqrt(0.3)
    assert power(0.3, 1 / 3) == pytest.approx(0.3 ** (1 / 3), rel=1e-15)
    assert power(0.7, 2.75) == pytest.approx(0.7**2.75, rel=1e-15)
    assert [power(x, math.inf) for x in (0.0, 0.5, 1.0)] == [0, 0, 1]


# -- arguments ------------------------------------------------------------------------------------------------


def test_arguments_have_upstreams_defaults() -> None:
    for args in ({}, {"targetUtilization": None, "defaultRequests": None, "defaultRequestsMultiplier": None}):
        made = TargetLoadPackingArgs.model_validate(args)
        assert (made.target_utilization, made.default_request, made.default_requests_multiplier) == (40, 1000, "1.5")
    assert TargetLoadPackingArgs.model_validate({"targetUtilization": -3}).target_utilization == 40
    assert TargetLoadPackingArgs.model_validate({"defaultRequests": {"memory": "1Gi"}}).default_request == 0
    assert TargetLoadPackingArgs.model_validate({"defaultRequestsMultiplier": 2}).default_requests_multiplier == "2"


@pytest.mark.parametrize(
    ("plugin", "args", "said"),
    [
        (PACKING, {"targetUtilization": 101}, "args.targetUtilization: is 101; must be at most 100"),
        (PACKING, {"defaultRequestsMultiplier": "nan"}, "'nan' is not a number of 0 or more"),
        (PACKING, {"defaultRequests": {"cpu": "-1"}}, "args.defaultRequests: must not be negative"),
        (BALANCING, {"safeVarianceMargin": "wide"}, "args.safeVarianceMargin: is 'wide'; must be a number"),
        (COMMITMENT, {"smoothingWindow": 3}, "args.smoothingWindow: is an unknown field"),
        (COMMITMENT, {"metricProvider": {"type": "Datadog"}}, "args.metricProvider.type: is 'Datadog'; must be one of"),
        (COMMITMENT, {"watcherAddress": ""}, "watcherAddress is empty, and metricProvider.type names no provider"),
    ],
)
def test_bad_arguments_get_one_line(plugin: str, args: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        profile_of(plugin, args)
    assert said in str(caught.value)
