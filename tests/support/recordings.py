"""Recorded decisions: where they are, and which of them are not those of a scheduler.

A recording is made by a harness around upstream's plugins. Where the harness stood in for a part of the scheduler
that it did not run, what it recorded is not upstream's answer. Every such place is listed here, with the reason.
"""

from __future__ import annotations

from pathlib import Path

from stowplan.answers.validate import Finding
from stowplan.models.snapshot import Snapshot

FOLDER = Path(__file__).parent.parent / "golden"
FILES = sorted(FOLDER.glob("*/*.jsonl.gz"))

WITHOUT_RESERVE = "the claim that a pod had made a volume for was not remembered for the pods that followed"
LEFT_OUT_LEAVING = "victims that were terminating already were neither listed nor taken off their node"

MISTAKEN: dict[str, dict[tuple[str, str], str]] = {
    "k24-more/wffc2-s1": dict.fromkeys(
        (
            ("k24-wffc2-s1-2", "default/p1"),
            ("k24-wffc2-s1-2", "default/p3"),
            ("k24-wffc2-s1-25", "default/p3"),
            ("k24-wffc2-s1-29", "default/p3"),
            ("k24-wffc2-s1-36", "default/p2"),
            ("k24-wffc2-s1-50", "default/p1"),
        ),
        WITHOUT_RESERVE,
    ),
    "k36-more/preempt2-s1": dict.fromkeys(
        (
            ("k36-preempt2-s1-1", "default/p1"),
            ("k36-preempt2-s1-4", "default/p2"),
            ("k36-preempt2-s1-39", "default/p0"),
            ("k36-preempt2-s1-39", "default/p1"),
            ("k36-preempt2-s1-57", "team-b/p2"),
        ),
        LEFT_OUT_LEAVING,
    ),
    "k36-more/preemptvol-s1": dict.fromkeys(
        (
            ("k36-preemptvol-s1-5", "default/p1"),
            ("k36-preemptvol-s1-47", "default/p1"),
            ("k36-preemptvol-s1-47", "default/p2"),
        ),
        LEFT_OUT_LEAVING,
    ),
}
"""By recording, the case and pod of every decision that is not compared. Other recordings of the same kind and release
(``wffc2-s2``, ``preempt2-s2`` and ``-s3``, ``preemptvol-s2`` and ``-s3``) hold what upstream does there, and agree."""

OWN_IMAGE_STATES = ("k24/", "k36/")
"""Recordings that gave every node its own size of an image; the scheduler's cache holds one size a name."""


def name_of(path: Path) -> str:
    """Return a recording's name: its folder and the file without endings."""
    return f"{path.parent.name}/{path.name.partition('.')[0]}"


def sizes_differ(snapshot: Snapshot) -> bool:
    """Whether some image name has different sizes on different nodes."""
    first: dict[str, int] = {}
    return any(
        first.setdefault(name, image.size_bytes) != image.size_bytes
        for node in snapshot.nodes
        for image in (node.status.images if node.status else ())
        for name in image.names
    )


def of_image_size(finding: Finding) -> bool:
    """Whether a difference is one that the size of an image can make."""
    found = finding.difference
    return (found.stage, found.plugin) in (("Score", "ImageLocality"), ("Total", ""), ("Choice", ""))
