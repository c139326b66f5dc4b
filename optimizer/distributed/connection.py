"""Reaching a Ray cluster, or beginning one on this machine; and whether its nodes can work for this process."""

from __future__ import annotations

import importlib.metadata
import logging
import os
import platform
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stowplan.models.errors import InputError

FLAG = "--backend"
"""The option that names a cluster, in error messages."""

REACHED_WITHIN = 4.0
"""Seconds in which a cluster has to answer."""

SETTLED_WITHIN = 60.0
"""Seconds that nodes have to answer the first question; the very first start reads a cold installation."""

TRIES = 3
"""How often a cluster is begun on this machine before it is given up."""

STORE = 256 * 2**20
"""Bytes of the object store of a cluster on this machine. It holds the problem once, and the tasks under way."""

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
"""What a client of HTTP/2 says first (RFC 9113, section 3.4), with empty settings."""

SETTINGS = 4
"""Type of the frame that a server of HTTP/2 says first."""


def connect(address: str | None, processors: int) -> Any:
    """Connect this process with a Ray cluster, and return the library.

    Parameters
    ----------
    address
        ``HOST:PORT`` of the cluster. ``None``: that of ``RAY_ADDRESS``, which Ray sets for jobs in a cluster; without
        it, one of one node is begun on this machine, which ends with this process.
    processors
        Of a cluster that is begun here.

    Raises
    ------
    InputError
        If Ray is not installed, no cluster answers, or its nodes have other versions of Python or stowplan.
    """
    # No reports to the makers of Ray: a solve needs no network but that of its cluster.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # A call after the connection has ended must fail, not begin another cluster.
    os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise InputError("needs Ray: pip install 'stowplan[ray]'", field=FLAG) from None
    address = address or os.environ.get("RAY_ADDRESS") or None
    if not ray.is_initialized():
        quiet = {"log_to_driver": False, "configure_logging": False, "logging_level": logging.CRITICAL}
        with _own_signals():
            if address is None:
                _begin(ray, processors, quiet)
            else:
                if address != "auto":
                    _require_answer(address)
                _join(ray, address, quiet)
        _silence(ray)
    try:
        _require_same(ray)
    except InputError:
        ray.shutdown()
        raise
    return ray


def versions() -> tuple[str, str]:
    """Return the versions of Python, major and minor, and of stowplan."""
    return ".".join(platform.python_version_tuple()[:2]), importlib.metadata.version("stowplan")


def _begin(ray: Any, processors: int, quiet: dict[str, Any]) -> None:
    """Begin a cluster of one node; the first start after an installation may fail, since it reads cold files."""
    for attempt in range(1, TRIES + 1):
        try:
            # By its default, it would join any other cluster that was begun on this machine.
            ray.init(address="local", num_cpus=processors, include_dashboard=False, object_store_memory=STORE, **quiet)
        except Exception as error:
            ray.shutdown()
            if attempt == TRIES:
                raise InputError(f"cannot begin Ray on this machine: {_line(error)}", field=FLAG) from None
        else:
            return


def _join(ray: Any, address: str, quiet: dict[str, Any]) -> None:
    try:
        ray.init(address=address, **quiet)
    except Exception as error:
        ray.shutdown()
        raise InputError(f"cannot join the Ray cluster at {address}: {_line(error)}", field=FLAG) from None


def _require_answer(address: str) -> None:
    """Make sure that a server which speaks Ray's protocol is there: by itself, Ray tries for more than a minute."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), REACHED_WITHIN) as peer:
            peer.settimeout(REACHED_WITHIN)
            if os.environ.get("RAY_USE_TLS", "0") == "0":  # otherwise this greeting would have to be encrypted
                peer.sendall(PREFACE)
                said = peer.recv(4)
                if len(said) < 4 or said[3] != SETTINGS:
                    raise InputError(f"what answers at {address} is no Ray cluster", field=FLAG)
    except OSError as error:
        raise InputError(f"no Ray cluster answers at {address}: {error.strerror or error}", field=FLAG) from None


def _require_same(ray: Any) -> None:
    """Make sure that every node has the versions of this process."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    def asked() -> tuple[str, str]:
        # Travels as code and not by name, so that it can answer where stowplan is missing.
        import importlib.metadata
        import platform

        try:
            ours = importlib.metadata.version("stowplan")
        except importlib.metadata.PackageNotFoundError:
            ours = ""
        return ".".join(platform.python_version_tuple()[:2]), ours

    until = time.monotonic() + SETTLED_WITHIN
    while not (nodes := [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]):
        if time.monotonic() > until:
            raise InputError("the Ray cluster has no node with processors", field=FLAG)
        time.sleep(0.2)
    probe = ray.remote(num_cpus=0)(asked)
    asking = {
        probe.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote(): node
        for node in nodes
    }
    answered, _ = ray.wait(list(asking), num_returns=len(asking), timeout=SETTLED_WITHIN)
    python, ours = versions()
    known = 0
    for question in answered:
        try:
            there = ray.get(question)
        except ray.exceptions.RayError:
            continue  # the node was lost meanwhile; the others can do
        known += 1
        if there != (python, ours):
            has = f"Python {there[0]} and " + (f"stowplan {there[1]}" if there[1] else "no stowplan")
            node = asking[question]["NodeManagerAddress"]
            raise InputError(
                f"the Ray node {node} has {has}; must have Python {python} and stowplan {ours}, as here", field=FLAG
            )
    if not known:
        raise InputError(f"no node of the Ray cluster did a job within {SETTLED_WITHIN:.0f} s", field=FLAG)


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep the handlers of this process: Ray puts one of its own in the place of that for SIGTERM."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _silence(ray: Any) -> None:
    """Have Ray report lost workers to its log files alone.

    It writes several lines on each to standard output, where an answer is printed; what was lost is counted and told
    by the `JobCounts` of a backend. There is no public switch for it.
    """
    ray._private.worker.print_to_stdstream = lambda *_, **__: None


def _line(error: BaseException) -> str:
    """Return the first line of what an error says."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
