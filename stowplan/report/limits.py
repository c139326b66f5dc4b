"""Limits on the length of lists in reports; nothing heavy is imported here."""

from __future__ import annotations

SHOWN = 20
"""Maximum number of moves, pods, or problems in a report; ``-o wide`` shows all."""
