"""Instances that come with the package."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parent / "data"


def demo_path() -> Path:
    """Return the path of the demonstration cluster: 24 nodes in three zones that have seen better days."""
    return DATA / "demo.json.gz"
