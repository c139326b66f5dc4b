"""The cluster as ``kubectl`` reaches it: contexts, logins, exec plugins and proxies are kubectl's business.

Every call is one process of the binary, in a session of its own, so that an interrupt from the keyboard reaches us and
leaves the request under way alone.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from stowplan.models.errors import StowplanError
from stowplan.models.network import NETWORK

OLDEST = (1, 20)
"""The oldest kubectl that is tested: Debian 12 has it."""
GRACE = 5.0
"""Seconds a process has beyond the request's own time limit, for reading its configuration and logging in."""
LOGIN = 60.0
"""Seconds for a login by an exec plugin, which the time limit of requests does not cover."""

_REFUSED = re.compile(r"Error from server(?: \((?P<reason>\w+)\))?: (?P<message>.*)")
_RETRY_AFTER = re.compile(r"^.*?\bRetry-After: *\[?\"?(\d+)", re.MULTILINE | re.IGNORECASE)
_CAUSE = re.compile(r'The disruption budget [^"\\]+')
_LOG_LINE = re.compile(r"^[IWEF]\d{4} \d\d:\d\d:\d\d\S* +\d+ \S+\] ?")


@dataclass
class ClusterError(StowplanError):
    """The cluster could not be asked, or said no.

    Parameters
    ----------
    message
        What kubectl said, in one line.
    what
        What was asked for, such as ``evict pod shop/web-1``.
    """

    message: str
    what: str = ""

    def __str__(self) -> str:
        return f"{self.what}: {self.message}" if self.what else self.message


@dataclass
class Refusal(ClusterError):
    """The API server answered, and the answer is no.

    Parameters
    ----------
    reason
        The ``reason`` of its ``Status``, such as ``NotFound``; empty if it gives none.
    retry_after
        Seconds after which it wants to be asked again, if it says so.
    """

    reason: str = ""
    retry_after: int | None = None


@dataclass
class NoAnswer(ClusterError):
    """No answer was seen: whether the request was carried out is not known."""


@dataclass(frozen=True)
class Kubectl:
    """How to call kubectl.

    Parameters
    ----------
    context, kubeconfig
        Passed on; kubectl's own defaults if not given.
    timeout
        Maximum seconds for one request.
    binary
        Name or path of the program.
    """

    context: str | None = None
    kubeconfig: str | None = None
    timeout: float = 60.0
    binary: str = "kubectl"

    @cached_property
    def version(self) -> str:
        """The version of the client.

        Raises
        ------
        ClusterError
            If the program is missing or older than `OLDEST`.
        """
        if shutil.which(self.binary) is None:
            raise ClusterError(f"{self.binary} is not installed or not in PATH; it is needed to talk to a cluster")
        answer = self._run(["version", "--client", "-o", "json"], None, self.timeout + GRACE)
        try:
            found = json.loads(answer.stdout)["clientVersion"]
            version = tuple(int(re.sub(r"\D.*", "", found[part])) for part in ("major", "minor"))
            name = str(found["gitVersion"])
        except (ValueError, KeyError, TypeError):
            raise ClusterError(f"{self.binary} version printed no version: {_last_line(answer.stderr)}") from None
        if version < OLDEST:
            raise ClusterError(f"{self.binary} is {name}; {'.'.join(map(str, OLDEST))} or newer is needed")
        return name

    def get(
        self, kinds: Sequence[str], *, namespace: str | None = None, chunk: int = 500, partial: bool = False
    ) -> Listing:
        """List whole kinds, in one namespace or in all.

        A list that changed too much while it was read in chunks is read again, the last time in one piece.

        Parameters
        ----------
        partial
            Leave out kinds that the user may not list, and name them in the answer.

        Raises
        ------
        Refusal, NoAnswer
            If anything else went wrong: a part of a list is never returned.
        """
        where = ["-n", namespace] if namespace else ["-A"]
        for size in (chunk, chunk, 0):
            command = ["get", ",".join(kinds), *where, "-o", "json", f"--chunk-size={size}"]
            answer = self._ask(command, None, self.timeout * 5)
            if answer.returncode == 0:
                return Listing(answer.stdout, ())
            errors = _errors(answer.stderr)
            forbidden = all(isinstance(error, Refusal) and error.reason == "Forbidden" for error in errors)
            if partial and forbidden and answer.stdout:
                return Listing(answer.stdout, tuple(error.message for error in errors))
            if not any(isinstance(error, Refusal) and error.reason == "Expired" for error in errors):
                break
        raise _placed(errors[0], f"get {','.join(kinds)}")

    def find(self, kind: str, name: str, namespace: str | None = None) -> bytes | None:
        """Return one object as JSON, or ``None`` if there is none of the name."""
        where = ["-n", namespace] if namespace else []
        answer = self._ask(["get", kind, name, *where, "-o", "json"], None, self.timeout)
        if answer.returncode == 0:
            return answer.stdout
        error = _errors(answer.stderr)[0]
        if isinstance(error, Refusal) and error.reason == "NotFound":
            return None
        raise _placed(error, f"get {kind} {namespace}/{name}" if namespace else f"get {kind} {name}")

    def raw(self, path: str) -> bytes:
        """Return what the server answers to a GET."""
        answer = self._ask(["get", "--raw", path], None, self.timeout)
        if answer.returncode:
            raise _placed(_errors(answer.stderr)[0], f"get {path}")
        return answer.stdout

    def post(self, path: str, body: dict[str, Any], what: str) -> bytes:
        """Send an object to a path of the API, and return the answer.

        kubectl does not show headers and details of an answer but in its log, so it is asked to write one.

        Raises
        ------
        Refusal
            If the server said no.
        NoAnswer
            If it is not known whether it did what it was asked for.
        """
        return self._send(["create", "--raw", path, "-f", "-", "-v=8"], body, what)

    def put(self, path: str, body: dict[str, Any], what: str) -> bytes:
        """Replace the object of a path as `post` sends one; what is not of the version that the body names stays."""
        # Without the option, kubectl 1.20 reads the schemas of the whole API first.
        return self._send(["replace", "--raw", path, "-f", "-", "--validate=false"], body, what)

    def _send(self, command: Sequence[str], body: dict[str, Any], what: str) -> bytes:
        answer = self._ask(command, json.dumps(body).encode(), self.timeout)
        if answer.returncode:
            raise _placed(_errors(answer.stderr)[0], what)
        return answer.stdout

    def cordon(self, node: str, closed: bool) -> None:
        """Cordon a node, or open it again.

        ``kubectl cordon`` exits with 0 even if the server said no, so the node is patched.
        """
        content = json.dumps({"spec": {"unschedulable": True if closed else None}})
        answer = self._ask(["patch", "node", node, "--type=merge", "-p", content], None, self.timeout)
        if answer.returncode:
            raise _placed(_errors(answer.stderr)[0], f"{'cordon' if closed else 'uncordon'} {node}")

    def served(self) -> frozenset[str]:
        """Return the kinds that the server lets be listed, as ``plural.group``."""
        answer = self._ask(["api-resources", "--verbs=list", "-o", "name"], None, self.timeout)
        found = frozenset(answer.stdout.decode().split())
        # The group of some aggregated API being out of order is an error, and the rest is printed all the same.
        if answer.returncode and "pods" not in found:
            raise _placed(_errors(answer.stderr)[0], "api-resources")
        return found

    def _ask(self, command: Sequence[str], body: bytes | None, seconds: float) -> subprocess.CompletedProcess[bytes]:
        self.version  # noqa: B018 - refuses a missing or an old binary before the first request
        options = [f"--request-timeout={self.timeout:g}s"]
        if self.context is not None:
            options.append(f"--context={self.context}")
        if self.kubeconfig is not None:
            options.append(f"--kubeconfig={self.kubeconfig}")
        return self._run([*command, *options], body, seconds + GRACE + LOGIN)

    def _run(self, command: Sequence[str], body: bytes | None, seconds: float) -> subprocess.CompletedProcess[bytes]:
        what = f"{self.binary} {command[0]}"
        NETWORK.get().require(what)
        try:
            return subprocess.run(
                [self.binary, *command],
                input=body if body is not None else b"",
                capture_output=True,
                timeout=seconds,
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise NoAnswer(f"did not end within {seconds:g} s", what) from None
        except OSError as error:
            raise ClusterError(f"cannot be run: {error.strerror}", what) from None


@dataclass(frozen=True, slots=True)
class Listing:
    """A ``List`` as JSON, and what is missing from it because the user may not see it."""

    data: bytes
    forbidden: tuple[str, ...]


def _errors(stderr: bytes) -> list[ClusterError]:
    """Return what went wrong, at least one thing."""
    text = stderr.decode(errors="replace")
    after = _RETRY_AFTER.search(text)
    found: list[ClusterError] = []
    for match in _REFUSED.finditer(text):
        message = match["message"].strip()
        if cause := _CAUSE.search(text):
            message = f"{message} {cause[0]}"
        found.append(Refusal(message, reason=match["reason"] or "", retry_after=int(after[1]) if after else None))
    return found or [NoAnswer(_last_line(stderr))]


def _last_line(stderr: bytes) -> str:
    """Return the line that kubectl ends with, without what it logs and without traces of its own stack."""
    text = stderr.decode(errors="replace").partition("\ngoroutine ")[0]
    lines = [_LOG_LINE.sub("", line).strip() for line in text.splitlines()]
    told = [line for line in lines if line]
    return told[-1].removeprefix("error: ") if told else "kubectl failed and said nothing"


def _placed(error: ClusterError, what: str) -> ClusterError:
    error.what = what
    return error
