"""An annotation for each pod that leaves, and none for a replacement that does not exist yet."""

import subprocess
from pathlib import Path

import pytest
from stowplan.emitters.annotations import emit_annotations

from stowplan.cli import run
from stowplan.emitters.emission import EmitOptions
from stowplan.models.errors import InputError
from tests.support.plans import move, plan


def test_the_script_annotates_every_pod_with_its_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = plan([move("web-a", "n1", "n2"), move("db-0", "n2", None)], [move("web-b", "n1", "n3")])
    path = tmp_path / "plan.json"
    path.write_text(made.model_dump_json(by_alias=True))
    assert run(["emit", str(path), "--to", "annotations", "-d", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "annotate.sh")
    # A kubectl that says what it was asked, in place of the real one.
    kubectl = tmp_path / "kubectl"
    kubectl.write_text('#!/bin/sh\nprintf "%s " "$@"; echo\n')
    kubectl.chmod(0o755)
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    asked = subprocess.run([tmp_path / "annotate.sh"], env=path, capture_output=True, text=True, check=True)
    assert asked.stdout.splitlines() == [
        "annotate pod -n default web-a stowplan.io/target=n2 ",
        "annotate pod -n default web-b stowplan.io/target=n3 ",
    ]


def test_a_replacement_is_not_annotated_before_it_exists() -> None:
    first = move("web-a", "n1", "n2", id="m1")
    made = plan([first], [move("web-a", "n2", "n3", id="m2", follows="m1")])
    (file,) = emit_annotations(made, EmitOptions()).files
    assert file.content.count("kubectl annotate") == 1


def test_a_name_that_no_cluster_has_never_reaches_the_shell() -> None:
    with pytest.raises(InputError, match="is not the name of a node"):
        emit_annotations(plan([move("web-a", "n1", "n2; rm -rf /")]), EmitOptions())
