"""Exit codes of commands, beside 0 for done and 1 for an error."""

INTERRUPTED = 130
CHANGES = 2
"""For an answer that differs from today, where it was asked for."""
IMPOSSIBLE = 3
"""For what was asked for and cannot be had, or was not found."""
