"""Parity with the real kube-scheduler, on decisions recorded from its own plugin code."""

from __future__ import annotations

from pathlib import Path

import pytest

from stowplan.answers.validate import Finding, validate
from stowplan.instances.traces import read_traces
from tests.support.recordings import FILES, FOLDER, MISTAKEN, OWN_IMAGE_STATES, name_of, of_image_size, sizes_differ

ALL = 10**6

# Other tests run the same lines, and these loops are what measuring slows down most.
pytestmark = pytest.mark.no_cover


def test_recordings_are_there() -> None:
    assert len(FILES) >= 83


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_recorded_decision_is_ours(path: Path) -> None:
    name = name_of(path)
    validation = validate([path], keep=ALL)
    assert validation.pods > 50
    findings = validation.findings
    assert len(findings) == validation.total
    if name.startswith(OWN_IMAGE_STATES) and findings:
        odd = {trace.case.id for trace in read_traces(path) if sizes_differ(trace.case.snapshot)}
        findings = [finding for finding in findings if not (finding.case in odd and of_image_size(finding))]
    differing = {(finding.case, finding.pod) for finding in findings}
    assert differing == MISTAKEN.get(name, {}).keys(), _others(findings, name)


@pytest.mark.parametrize("path", sorted((FOLDER / "cases").glob("*.jsonl")), ids=lambda path: path.stem)
def test_every_case_that_once_went_wrong_is_right(path: Path) -> None:
    validation = validate([path])
    assert validation.pods
    assert validation.holds, validation.findings


def test_cases_are_there() -> None:
    assert len(list((FOLDER / "cases").glob("*.jsonl"))) >= 15


def _others(findings: list[Finding], name: str) -> list[Finding]:
    return [finding for finding in findings if (finding.case, finding.pod) not in MISTAKEN.get(name, {})][:5]
