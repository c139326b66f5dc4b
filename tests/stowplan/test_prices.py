"""Prices of nodes in every form, the objective that empties the dearest, and what is saved."""

from __future__ import annotations

import csv
import io
import itertools
import json
from pathlib import Path

import pytest

from stowplan.answers.solve import solve_snapshot
from stowplan.cli import run
from stowplan.models.errors import InputError
from stowplan.models.options import Options
from stowplan.models.result import Status
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.settings.prices import node_prices
from stowplan.settings.problem import make_problem
from tests.support.clusters import node, pod, snapshot
from tests.support.malformed import listed

QUICK = ("-q", "-t", "2", "--deterministic")
TYPE = "node.kubernetes.io/instance-type"
SPOT = {"karpenter.sh/capacity-type": "spot"}
NODES = [
    node("large", cpu="8", memory="32Gi", labels={TYPE: "m5.2xlarge"}),
    node("small", cpu="4", memory="16Gi", labels={TYPE: "m5.xlarge"}),
    node("spot", cpu="4", memory="16Gi", labels={TYPE: "m5.xlarge", **SPOT}),
]
LIST = """
prices:
- {labels: {karpenter.sh/capacity-type: spot}, price: 0.08}
- {instanceType: m5.xlarge, price: 0.192}
- {price: 0.384}
"""
OPENCOST = {
    "provider": "custom",
    "description": "prices of our own machines",
    "CPU": "0.03",
    "RAM": "0.004",
    "GPU": "0.95",
    "storage": "0.0001",
    "spotCPU": "0.006",
    "spotRAM": "0.001",
    "spotLabel": "karpenter.sh/capacity-type",
    "spotLabelValue": "spot",
}
CSV = (
    "EndTimestamp,InstanceID,Region,AssetClass,InstanceIDField,InstanceType,MarketPriceHourly,Version\n"
    f",m5.xlarge,,node,metadata.labels.{TYPE},,0.2,\n"
    ",large,,node,metadata.name,,0.4,\n"
    ",disk-1,,pv,metadata.name,,7,\n"
)


def overlay(requirement: str, weight: int, **spec: str) -> str:
    body = {"requirements": [json.loads(requirement)], "weight": weight, **spec}
    return json.dumps({"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "spec": body})


ON_SPOT = '{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}'
ANY = f'{{"key": "{TYPE}", "operator": "Exists"}}'


def prices(tmp_path: Path, text: str, name: str = "prices.yaml") -> dict[str, float]:
    path = tmp_path / name
    path.write_text(text)
    return dict(node_prices(str(path), snapshot(nodes=NODES).nodes))


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("prices.yaml", LIST, (0.384, 0.192, 0.08)),
        # 8 · 0.03 + 32 · 0.004, 4 · 0.03 + 16 · 0.004, 4 · 0.006 + 16 · 0.001
        ("default.json", json.dumps(OPENCOST), (0.368, 0.184, 0.04)),
        ("prices.csv", CSV, (0.4, 0.2, 0.2)),
        ("prices.yaml", LIST + "---\n" + overlay(ON_SPOT, 1, priceAdjustment="-50%"), (0.384, 0.192, 0.04)),
        ("prices.yaml", LIST + "---\n" + overlay(ANY, 1, priceAdjustment="+0.1"), (0.484, 0.292, 0.18)),
        (
            "prices.yaml",
            "\n---\n".join([LIST, overlay(ANY, 1, price="1"), overlay(ON_SPOT, 2, price="0.5")]),
            (1.0, 1.0, 0.5),
        ),
        ("overlays.yaml", overlay(ANY, 0, price="0.3"), (0.3, 0.3, 0.3)),
    ],
)
def test_every_form_is_read(tmp_path: Path, name: str, text: str, expected: tuple[float, ...]) -> None:
    found = prices(tmp_path, text, name)
    assert list(found) == ["large", "small", "spot"]
    assert tuple(found.values()) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("p.yaml", "prices: [{instanceType: m5.xlarge, price: 0.2}]", "has no price for node large; every node needs"),
        ("p.yaml", "prices: []", "at least 1 item"),
        ("p.yaml", "prices: [{price: -1}]", "is -1; must be 0 or more"),
        ("p.yaml", "prices: [{price: 1, zone: a}]", "zone"),
        ("p.yaml", "kind: ConfigMap", "is no list of prices, no custom prices of OpenCost, and no NodeOverlay"),
        ("p.yaml", "[1", "is neither JSON nor YAML"),
        ("p.json", json.dumps({"CPU": "cheap", "RAM": "1"}), "CPU"),
        ("p.json", overlay(ANY, 1, priceAdjustment="a lot"), "priceAdjustment: is 'a lot'; must be a number"),
        ("p.json", overlay(ANY, 1, price="1", priceAdjustment="+1%"), "has both price and priceAdjustment"),
        ("p.json", overlay(ANY, 1, priceAdjustment="+10%"), "has no price for node large, and 2 more nodes"),
        ("p.csv", "a,b\n1,2\n", "has no column AssetClass, InstanceID, InstanceIDField, MarketPriceHourly"),
        ("p.csv", CSV.replace("metadata.name", "spec.providerID"), "line 3: InstanceIDField: is 'spec.providerID'"),
        ("p.csv", CSV.replace("0.4", "free"), "line 3: MarketPriceHourly: is 'free'; must be a number"),
    ],
)
def test_what_cannot_be_used_gets_one_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        prices(tmp_path, text, name)
    assert said in str(refused.value)
    assert str(tmp_path) in str(refused.value)
    assert "\n" not in str(refused.value)


def cluster() -> Snapshot:
    pods = [
        pod(f"p{i}", name, cpu="1500m", owner=f"ReplicaSet/p{i}") for i, name in enumerate(("large", "small", "spot"))
    ]
    return snapshot(nodes=NODES, pods=pods)


def test_the_dearest_nodes_are_emptied_first() -> None:
    """Against enumeration: the cheapest set of nodes that holds all pods, and then the fewest moves."""
    told = {"large": 0.384, "small": 0.192, "spot": 0.08}
    compiled = make_problem(cluster(), Settings(objective="cost", prices=told))
    found = solve_snapshot(compiled, Options(time_limit=2, deterministic=True))
    best = None
    for chosen in itertools.product(told, repeat=3):
        load = {name: 1.5 * chosen.count(name) for name in told}
        if load["large"] <= 8 and load["small"] <= 4 and load["spot"] <= 4:
            price = sum(told[name] for name in set(chosen))
            moves = sum(now != then for now, then in zip(chosen, told, strict=True))
            best = min(best or (price, moves), (price, moves))
    assert best is not None
    assert found.status is Status.OPTIMAL
    tiers = {tier.tier.name: tier.tier.shown(tier.value) for tier in found.outcome.tiers}
    assert (tiers["price"], tiers["moves"]) == pytest.approx(best)
    assert set(found.assignment.values()) == {"small", "spot"}


def test_the_objective_needs_prices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps(listed(*NODES)))
    assert run(["solve", str(dump), *QUICK, "-O", "cost"]) == 1
    assert "objective: price: needs prices of nodes; give --prices FILE" in capsys.readouterr().err


def test_savings_are_in_every_form_and_solutions_are_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump, file, solution = (tmp_path / name for name in ("dump.json", "prices.yaml", "solution.json"))
    names = ("large", "small", "spot")
    pods = [pod(f"p{i}", name, cpu="1500m", owner=f"ReplicaSet/p{i}") for i, name in enumerate(names)]
    dump.write_text(json.dumps(listed(*NODES, *pods)))
    file.write_text(LIST)
    words = ("compare", str(dump), *QUICK, "-O", "cost", "--prices", str(file))
    assert run(words) == 0
    text = capsys.readouterr().out
    told = "Nodes in use cost 0.66 → 0.27 per hour: saves 0.38 per hour, 280 per month of 730 hours"
    assert told in text
    assert run([*words, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["placements"]["stowplan"]["price"] == pytest.approx(0.272)
    assert document["solution"]["settings"]["prices"] == {"large": 0.384, "small": 0.192, "spot": 0.08}
    solution.write_text(json.dumps(document))
    assert run(["verify", str(solution), str(dump)]) == 0
    capsys.readouterr()
    assert run([*words, "-o", "csv"]) == 0
    rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(capsys.readouterr().out))}
    assert float(rows["price"][1]) == pytest.approx(0.656)
    assert run(["compare", str(dump), *QUICK]) == 0
    assert "per hour" not in capsys.readouterr().out
