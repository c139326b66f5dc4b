"""How much of a long list a report shows; nothing heavy is imported here."""

from __future__ import annotations

SHOWN = 20
"""Moves, pods or problems that a report shows; ``-o wide`` shows all."""
