"""A request to stop, which any thread or signal handler can make."""

from __future__ import annotations

import threading


class Stop(threading.Event):
    """Set from anywhere, a signal handler included, to ask for the best answer so far."""
