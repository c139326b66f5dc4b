"""Alerts and dashboard speak of metrics that are really exported, and mean what they say."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from stowplan.cli import run
from tests.stowplan.serving.test_server import ask, web_plan
from tests.stowplan.test_plan_command import cluster
from tests.support.applying import scene
from tests.support.extender import serving, waiting
from tests.support.kubectl import needs_kubectl
from tests.support.servers import missing_prometheus, prometheus

MONITORING = Path(__file__).parents[2] / "examples" / "monitoring"
RULES = yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"][0]["rules"]
BOARD = json.loads((MONITORING / "dashboard.json").read_text())
EXPRESSIONS = [target["expr"].replace("$__rate_interval", "5m") for p in BOARD["panels"] for target in p["targets"]]

pytestmark = [
    pytest.mark.skipif(missing_prometheus() is not None, reason=str(missing_prometheus())),
    needs_kubectl,
]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run plan, apply, and serve, and return what each exports."""
    home = tmp_path_factory.mktemp("exported")
    (home / "dump.json").write_text(json.dumps(cluster()))
    quick = ("-q", "-t", "1", "--deterministic", "--no-protection-costs")
    assert run(["plan", str(home / "dump.json"), *quick, "--metrics-file", str(home / "plan.prom")]) == 0
    with scene(home) as shop:
        done = shop.command("apply", "plan.json", "--yes", "--unsteered", "--metrics-file", "apply.prom")
        assert done.returncode == 0, done.stderr
    with serving(web_plan(), home) as server:
        ask(server, waiting("web-x", "web"))
        with urllib.request.urlopen(f"{server.url.removesuffix('/v1')}/metrics", timeout=10) as answer:
            served = answer.read().decode()
    return {"plan": (home / "plan.prom").read_text(), "apply": (home / "apply.prom").read_text(), "serve": served}


def samples(exported: dict[str, str]) -> Iterator[tuple[str, dict[str, str], float]]:
    for job, text in exported.items():
        for family in text_string_to_metric_families(text):
            yield from ((s.name, {**s.labels, "job": job}, float(s.value)) for s in family.samples)


@pytest.fixture(scope="module")
def server(exported: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a Prometheus that has scraped all of it for ten minutes."""
    lines, now = [], time.time()
    for name, labels, value in samples(exported):
        told = ",".join(f"{key}={json.dumps(text)}" for key, text in labels.items())
        lines += [f"{name}{{{told}}} {value + i} {now - 600 + 30 * i:.0f}" for i in range(20)]
    with prometheus(tmp_path_factory.mktemp("prometheus"), "\n".join([*lines, "# EOF", ""])) as address:
        yield address


def asked(server: str, expression: str) -> list[dict[str, Any]]:
    moment = time.time() - 60
    query = urllib.parse.urlencode({"query": expression, "time": f"{moment:.0f}"})
    with urllib.request.urlopen(f"{server}/api/v1/query?{query}", timeout=30) as answer:
        found: list[dict[str, Any]] = json.loads(answer.read())["data"]["result"]
    return found


def names(expression: str) -> set[str]:
    return set(re.findall(r"\bstowplan_\w+", expression))


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_panel_shows_something(expression: str, server: str) -> None:
    found = asked(server, expression)
    assert found
    assert all(float(one["value"][1]) == float(one["value"][1]) for one in found), "not a number"


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
def test_every_alert_is_about_exported_series(rule: dict[str, Any], server: str) -> None:
    for selector in re.findall(r"stowplan_\w+(?:\{[^}]*\})?", rule["expr"]):
        assert asked(server, selector), selector
    assert {"summary", "description"} == set(rule["annotations"])


def test_promtool_takes_rules_and_panels(tmp_path: Path) -> None:
    shutil.copy(MONITORING / "alerts.yaml", tmp_path)
    recorded = [{"record": f"panel:{i}", "expr": expression} for i, expression in enumerate(EXPRESSIONS)]
    (tmp_path / "panels.yaml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": recorded}]}))
    for name, count in (("alerts.yaml", len(RULES)), ("panels.yaml", len(EXPRESSIONS))):
        done = subprocess.run(
            ["promtool", "check", "rules", "--lint-fatal", str(tmp_path / name)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"SUCCESS: {count} rules found" in done.stdout


def test_every_metric_of_a_run_is_on_the_dashboard_or_in_an_alert(exported: dict[str, str]) -> None:
    used = set().union(*map(names, [*EXPRESSIONS, *(rule["expr"] for rule in RULES)]))
    runs = {name for name, labels, _ in samples(exported) if labels["job"] in ("plan", "apply")}
    assert runs <= used


DAY = 86_400
FIRING: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "StowplanPlanFailed": (
        {
            "stowplan_plan_last_run_timestamp_seconds": "200x100",
            "stowplan_plan_last_success_timestamp_seconds": "100x100",
        },
        {
            "stowplan_plan_last_run_timestamp_seconds": "100x100",
            "stowplan_plan_last_success_timestamp_seconds": "100x100",
        },
    ),
    "StowplanPlanMissing": (
        {"stowplan_plan_last_success_timestamp_seconds": f"{-2 * DAY}x100"},
        {"stowplan_plan_last_success_timestamp_seconds": f"{-DAY}x100"},
    ),
    "StowplanPlanGap": ({"stowplan_plan_gap_ratio": "0.2x100"}, {"stowplan_plan_gap_ratio": "0.05x100"}),
    "StowplanApplyFailed": (
        {
            "stowplan_apply_last_run_timestamp_seconds": "200x100",
            "stowplan_apply_last_success_timestamp_seconds": "0x100",
        },
        {
            "stowplan_apply_last_run_timestamp_seconds": "0x100",
            "stowplan_apply_last_success_timestamp_seconds": "0x100",
        },
    ),
    "StowplanMovesRefused": (
        {'stowplan_apply_moves{state="refused"}': "1x100"},
        {'stowplan_apply_moves{state="refused"}': "0x100", 'stowplan_apply_moves{state="landed"}': "5x100"},
    ),
    "StowplanPodsElsewhere": (
        {'stowplan_apply_moves{state="elsewhere"}': "2x100"},
        {'stowplan_apply_moves{state="elsewhere"}': "0x100"},
    ),
    "StowplanServeExpired": (
        {'stowplan_plan_expires_timestamp_seconds{plan="plan-7f3a"}': "60x100"},
        {'stowplan_plan_expires_timestamp_seconds{plan="plan-7f3a"}': f"{DAY}x100"},
    ),
    "StowplanServeSlow": (
        {
            'stowplan_request_seconds_bucket{verb="filter",le="0.1"}': "0+1x100",
            'stowplan_request_seconds_bucket{verb="filter",le="0.5"}': "0+2x100",
            'stowplan_request_seconds_bucket{verb="filter",le="+Inf"}': "0+2x100",
        },
        {
            'stowplan_request_seconds_bucket{verb="filter",le="0.1"}': "0+2x100",
            'stowplan_request_seconds_bucket{verb="filter",le="0.5"}': "0+2x100",
            'stowplan_request_seconds_bucket{verb="filter",le="+Inf"}': "0+2x100",
        },
    ),
    "StowplanServeCertificates": (
        {"stowplan_certificates_current": "0x100"},
        {"stowplan_certificates_current": "1x100"},
    ),
}
"""Of each alert: series at which it fires within 100 minutes, and series at which it does not."""


def test_every_alert_is_tried() -> None:
    assert set(FIRING) == {rule["alert"] for rule in RULES}


@pytest.mark.parametrize("alert", FIRING)
@pytest.mark.parametrize("fires", [True, False])
def test_an_alert_fires_when_it_should_and_only_then(alert: str, fires: bool, tmp_path: Path) -> None:
    (tmp_path / "alerts.yaml").write_text((MONITORING / "alerts.yaml").read_text())
    series = FIRING[alert][0 if fires else 1]
    case = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})',
                "eval_time": "95m",
                "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
            }
        ],
    }
    content = {"rule_files": ["alerts.yaml"], "evaluation_interval": "1m", "tests": [case]}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(content))
    done = subprocess.run(
        ["promtool", "test", "rules", str(tmp_path / "test.yaml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
