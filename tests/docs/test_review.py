"""The example of a review: its policy, its workflow step by step, and the job that applies what was merged."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from stowplan.cli import run
from stowplan.models.plan import Plan
from tests.support.applying import Scene, scene
from tests.support.kubectl import needs_kubectl
from tests.support.kustomized import DEPLOY, rendered
from tests.support.plans import move, plan
from tests.support.pod_security import offences

ROOT = Path(__file__).parents[2]
REVIEW = ROOT / "examples" / "review"
BIN = Path(sys.executable).parent
WORKFLOW = yaml.safe_load((REVIEW / "review.yml").read_text())
STEPS = {step["name"]: step["run"] for step in WORKFLOW["jobs"]["review"]["steps"] if "run" in step}

GH = """#!/bin/sh
printf '%s\\n' "$*" >> gh.log
exit ${GH_CODE:-0}
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Lay out a repository as the workflow expects it, with what its runner brings."""
    shutil.copytree(REVIEW / "policy", tmp_path / "policy")
    (tmp_path / "plans").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text(GH)
    (tmp_path / "bin" / "gh").chmod(0o755)
    return tmp_path


def put(folder: Path, **changes: Any) -> None:
    made = plan([move("shop/web-1", "a", "b")]).model_copy(update=changes)
    (folder / "plans" / "plan.json").write_text(made.model_dump_json(by_alias=True))


def step(folder: Path, name: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **WORKFLOW["jobs"]["review"]["env"], "REQUEST": "7", "GITHUB_STEP_SUMMARY": "summary.md"}
    env["PATH"] = f"{folder / 'bin'}:{BIN}:{os.environ['PATH']}"
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[name]]  # as GitHub runs steps
    return subprocess.run(shell, cwd=folder, env={**env, **more}, capture_output=True, text=True, check=False)


# -- the policy -------------------------------------------------------------------------------------------------------


def said(folder: Path, made: Plan) -> tuple[int, str]:
    (folder / "one.json").write_text(made.model_dump_json(by_alias=True))
    command = [sys.executable, "policy/check.py", "policy/plan.rego", "one.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_a_policy_lets_a_small_plan_pass(checkout: Path) -> None:
    assert said(checkout, plan([move("shop/web-1", "a", "b")]).model_copy(update={"status": "OPTIMAL"})) == (0, "")


def doctored(change: Callable[[dict[str, Any]], None]) -> Plan:
    content = plan([move("shop/web-1", "a", "b")]).model_dump()
    change(content)
    return Plan.model_validate(content)


DENIED = {
    "12 moves; at most 10 may be under way": plan([move(f"web-{i}", "a", "b") for i in range(12)]),
    "60 moves; at most 50 may be applied": plan(*([move(f"web-{i}", "a", "b")] for i in range(60))),
    "evicts kube-system/dns-1; pods of kube-system stay": plan([move("kube-system/dns-1", "a", "b")]),
    "of default/web-1 loses emptyDir": plan([move("web-1", "a", "b", loses=("emptyDir cache",))]),
    "takes the node of default/web-1 away": plan([move("web-1", "a", None)]),
    "was made from an incomplete dump": doctored(lambda p: p.update(partial=True)),
    "constraint violations rise from 0 to 2": doctored(
        lambda p: p.update(
            tiers=[
                {
                    "name": "constraint violations",
                    "unit": "",
                    "before": 0,
                    "after": 2,
                    "bound": 0,
                    "bound_by": "trivial",
                }
            ]
        )
    ),
}


@pytest.mark.parametrize("message", DENIED)
def test_a_policy_denies(message: str, checkout: Path) -> None:
    code, text = said(checkout, DENIED[message])
    assert code == 1
    assert re.search(f"^deny: .*{re.escape(message)}", text, re.MULTILINE)


def test_a_policy_warns(checkout: Path) -> None:
    code, text = said(checkout, doctored(lambda p: p.update(status="FEASIBLE", cordon=["a"])))
    assert (code, text) == (0, "warn: 1 nodes stay cordoned\nwarn: is not proven optimal\n")


# -- the workflow -----------------------------------------------------------------------------------------------------


def test_the_workflow_is_one() -> None:
    command = [BIN / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", REVIEW / "review.yml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_workflow_is_safe(tmp_path: Path) -> None:
    """No step takes text of the pull request for a script, rights are least, actions are pinned."""
    found = tmp_path / ".github" / "workflows"
    found.mkdir(parents=True)
    shutil.copy(REVIEW / "review.yml", found)
    command = [BIN / "zizmor", "--offline", "--no-progress", "--min-severity", "low", str(found / "review.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", STEPS)
def test_its_scripts_pass_shellcheck(name: str) -> None:
    done = subprocess.run(
        [BIN / "shellcheck", "-s", "bash", "-"], input=STEPS[name], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_a_plan_is_commented(checkout: Path) -> None:
    put(checkout, status="OPTIMAL")
    for name in ("Show the plan", "Check the policy", "Comment"):
        done = step(checkout, name)
        assert done.returncode == 0, done.stderr
    comment = (checkout / "comment.md").read_text()
    assert "| 1 | `shop/web-1` | `a` | `b` |" in comment
    assert "Policy" not in comment
    assert (checkout / "summary.md").read_text() == comment
    told = (checkout / "gh.log").read_text()
    assert told == "pr comment 7 --edit-last --create-if-none --body-file comment.md\n"


def test_a_plan_that_the_policy_denies_is_commented_and_fails(checkout: Path) -> None:
    put(checkout, partial=True)
    assert step(checkout, "Show the plan").returncode == 0
    assert step(checkout, "Check the policy").returncode == 1
    assert step(checkout, "Comment", GH_CODE="1").returncode == 0  # as for a fork
    assert "deny: was made from an incomplete dump" in (checkout / "comment.md").read_text()


# -- the job ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def merged(tmp_path: Path) -> Iterator[Scene]:
    """Bring a reviewed plan into the folder of the job, for a cluster that lives."""
    home = tmp_path / "home"
    home.mkdir()
    with scene(home) as found:
        folder = shutil.copytree(REVIEW / "gitops", tmp_path / "examples" / "review" / "gitops")
        (tmp_path / "deploy").symlink_to(DEPLOY)
        data = found.plan.model_dump_json(by_alias=True).encode()
        (folder / "plan.json").write_bytes(data)
        kustomization = folder / "kustomization.yaml"
        kustomization.write_text(kustomization.read_text().replace("0" * 64, hashlib.sha256(data).hexdigest()))
        yield found


@needs_kubectl
def test_the_job_carries_out_what_was_reviewed(
    merged: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {item["kind"]: item for item in rendered(tmp_path / "examples" / "review" / "gitops", warns=True)}
    assert found.keys() == {"Job", "ConfigMap", "PersistentVolumeClaim"}
    for item in found.values():
        kubernetes_validate.validate(item, "1.36", strict=True)
    job = found["Job"]["spec"]
    spec = job["template"]["spec"]
    assert (job["suspend"], offences(spec)) == (False, [])
    (container,) = spec["containers"]
    volumes = {volume["name"] for volume in spec["volumes"]}
    assert volumes == {mount["name"] for mount in container["volumeMounts"]} == {"plan", "journal", "tmp"}
    content = found["ConfigMap"]["data"]
    name = found["ConfigMap"]["metadata"]["name"]
    assert container["env"][0]["valueFrom"]["configMapKeyRef"]["name"] == name  # a new plan is a new name
    (tmp_path / "mounted.json").write_text(content["plan.json"])
    places = {
        "/plan/plan.json": str(tmp_path / "mounted.json"),
        "/journal/": f"{tmp_path}/",
        "$(PLAN_SHA256)": content["PLAN_SHA256"],
    }
    arguments = container["args"]
    for place, here in places.items():
        arguments = [word.replace(place, here) for word in arguments]
    monkeypatch.setenv("KUBECONFIG", str(merged.kubeconfig))
    monkeypatch.setenv("HOME", str(merged.home))
    assert run([*arguments, "--unsteered", "--poll", "0.25", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["complete"]
    merged.check_done()
    assert (tmp_path / f"{content['PLAN_SHA256']}.journal").exists()
    assert 'stowplan_apply_runs_total{outcome="done"} 1.0' in (tmp_path / "apply.prom").read_text()
    (tmp_path / "mounted.json").write_text(content["plan.json"] + "\n")
    assert run(arguments) == 1
    assert "--expect-hash says" in capsys.readouterr().err
