"""Exit codes of commands, besides 0 for success and 1 for an error."""

INTERRUPTED = 130
CHANGES = 2
"""The answer differs from today; only with ``--detailed-exitcode``."""
IMPOSSIBLE = 3
"""What was requested is impossible, or was not found."""
