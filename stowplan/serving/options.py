"""How a plan is served, and where: arguments of the server and options of the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from stowplan.models.command_line import Option
from stowplan.models.errors import InputError
from stowplan.models.hosts import is_local
from stowplan.models.quantity import parse_quantity

LEASE_SECONDS, PATIENCE_SECONDS = 360.0, 300.0


class Mode(StrEnum):
    """What the extender answers about the nodes that a pod is not planned for."""

    PRIORITIZE = "prioritize"
    """They score less, and are filtered out only where the pod that is replaced has to be gone first."""

    FILTER = "filter"
    """They are filtered out."""


def read_bytes(word: str) -> int:
    """Return the bytes of a quantity such as ``64Mi``.

    Raises
    ------
    ValueError
        If it is no quantity, or none at all.
    """
    try:
        found = parse_quantity(word) // parse_quantity("1")
    except ValueError:
        found = 0
    if found <= 0:
        raise ValueError(f"is {word!r}; must be a quantity above 0, such as 64Mi")
    return found


@dataclass(frozen=True)
class Serving:
    """How a plan is served.

    Parameters
    ----------
    mode
        How firmly a pod is steered to its node.
    lease, patience
        Seconds; see `stowplan.serving.ledger.TokenLedger`.
    max_body
        Bytes of the largest question. Nodes that are sent as objects take some 10 kB each.
    max_bodies
        Bytes of all questions under way; twice the largest if ``None``.
    max_connections
        How many clients may be connected at a time.
    """

    mode: Annotated[Mode, Option("prioritize: prefer the planned node. filter: allow no other node.", None)] = (
        Mode.PRIORITIZE
    )
    lease: Annotated[
        float,
        Field(ge=1.0),
        Option("Seconds without a request about a pod after which its lease ends.", None, metavar="SECONDS"),
    ] = LEASE_SECONDS
    patience: Annotated[
        float,
        Field(ge=1.0),
        Option("Seconds after which a pod that must wait for its node may use any.", None, metavar="SECONDS"),
    ] = PATIENCE_SECONDS
    max_body: Annotated[
        int,
        Field(ge=1),
        Option(
            "Maximum size of a request.",
            None,
            metavar="QUANTITY",
            read=read_bytes,
            write=lambda size: f"{size // 2**20}Mi",
        ),
    ] = 64 * 2**20
    max_bodies: Annotated[
        int | None,
        Option(
            "Maximum size of all requests under way; by default twice that of one.",
            None,
            metavar="QUANTITY",
            read=read_bytes,
        ),
    ] = None
    max_connections: Annotated[
        int,
        Field(ge=2),
        Option("Maximum number of connections; a new one takes the place of one that asks nothing.", None),
    ] = 1000

    def __post_init__(self) -> None:
        """Check that the largest question has room.

        Raises
        ------
        InputError
            If it has not.
        """
        if self.max_bodies is not None and self.max_bodies < self.max_body:
            raise InputError(f"is {self.max_bodies}; must be at least --max-body", field="max_bodies")

    @property
    def bodies(self) -> int:
        """Bytes of all questions under way."""
        return 2 * self.max_body if self.max_bodies is None else self.max_bodies


ASK, WAVES = "ask", "waves"
"""Rights that the name in a client's certificate can give."""


@dataclass(frozen=True, slots=True)
class ClientNames:
    """Names in the certificates of clients, by what their bearers may do.

    Parameters
    ----------
    askers
        May ask where pods belong.
    openers
        May open waves.
    """

    askers: frozenset[str]
    openers: frozenset[str]


def read_client_names(words: Sequence[str]) -> ClientNames:
    """Return who may do what, of words such as ``ask=system:kube-scheduler`` and ``waves=stowplan-apply``.

    Raises
    ------
    ValueError
        If a word is none of these, or none may ask.
    """
    names: dict[str, set[str]] = {ASK: set(), WAVES: set()}
    for word in words:
        right, _, name = word.partition("=")
        if right not in names or not name:
            raise ValueError(f"is {word!r}; must be {ASK}=NAME or {WAVES}=NAME")
        names[right].add(name)
    if not names[ASK]:
        raise ValueError(f"says who may open waves, and not who may ask; add {ASK}=NAME")
    return ClientNames(frozenset(names[ASK]), frozenset(names[WAVES]))


@dataclass(frozen=True)
class Listening:
    """Where a plan is served, and to whom.

    Parameters
    ----------
    bind, health_bind
        ``host:port``; port 0 is any free one. Health and metrics are on the second alone, if it is given.
    certificate, key, client_ca
        Files in PEM; see `stowplan.serving.certificates.Certificates`.
    clients
        Who may do what; every client may do everything if ``None``.
    hosts
        Names of the server.
    """

    bind: Annotated[
        str, Option("Address to listen on; port 0 is any free one.", None, flags=("--bind",), metavar="HOST:PORT")
    ] = "127.0.0.1:8888"
    health_bind: Annotated[
        str | None,
        Option(
            "Address of health and metrics alone, in plain HTTP; --bind then has neither.", None, metavar="HOST:PORT"
        ),
    ] = None
    certificate: Annotated[
        str | None, Option("Certificate, in PEM; read again when it changes.", None, ("--tls-cert",), metavar="FILE")
    ] = None
    key: Annotated[str | None, Option("Its key, in PEM.", None, ("--tls-key",), metavar="FILE")] = None
    client_ca: Annotated[
        str | None,
        Option(
            "Accept only clients with a certificate of this authority, in PEM.",
            None,
            ("--tls-client-ca",),
            metavar="FILE",
        ),
    ] = None
    clients: Annotated[
        ClientNames | None,
        Option(
            "Only these names in certificates may ask (ask=NAME) or open waves (waves=NAME).",
            None,
            ("--tls-client-name",),
            metavar="RIGHT=NAME",
            read=read_client_names,
            several=True,
        ),
    ] = None
    hosts: Annotated[
        tuple[str, ...],
        Option("Name of this server under which waves may be opened.", None, ("--host-name",), metavar="NAME"),
    ] = ()

    def __post_init__(self) -> None:
        """Check that names of clients can be known.

        Raises
        ------
        InputError
            If they cannot.
        """
        if self.clients is not None and self.client_ca is None:
            raise InputError("needs --tls-client-ca, whose certificates have names", field="clients")

    @property
    def open_to_all(self) -> bool:
        """Whether clients on other machines can connect without a certificate."""
        host, _ = read_address(self.bind, "--bind")
        return self.client_ca is None and not is_local(host)


def read_address(bind: str, option: str) -> tuple[str, int]:
    """Read ``host:port``; a host with colons is in brackets, and an empty host means all addresses.

    Raises
    ------
    InputError
        If it is none.
    """
    host, colon, port = bind.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise InputError(f"{bind!r} is not an address, such as 127.0.0.1:8888", field=option)
    return host.strip("[]") or "0.0.0.0", int(port)
