"""How connections are secured: certificates from files, which are read again when they change."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

from stowplan.models.errors import InputError

Stamp = tuple[tuple[int, int, int] | None, ...]


class Certificates:
    """A server's certificate with its key, and the authority of its clients.

    Parameters
    ----------
    certificate, key
        Files in PEM; both or none.
    client_ca
        A file in PEM: only clients whose certificate it has signed are served.

    Attributes
    ----------
    context
        How the next connection is secured, if it is.
    current
        Whether that is what the files say now.

    Raises
    ------
    InputError
        If a file cannot be used.
    """

    def __init__(self, certificate: str | None, key: str | None, client_ca: str | None) -> None:
        self._certificate, self._key, self._client_ca = certificate, key, client_ca
        self._stamp = self._stamped()
        self.context = self._made()
        self.current = True

    def refresh(self, tell: Callable[[str], None]) -> None:
        """Read the files again if they have changed; what cannot be used is told once, and the last good ones stay."""
        stamp = self._stamped()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self.context = self._made()
        except InputError as error:
            self.current = False
            tell(f"warning: {error}; the certificates read before stay in use")
        else:
            self.current = True
            tell("certificates are read again")

    def _stamped(self) -> Stamp:
        return tuple(_stamp(Path(name)) for name in (self._certificate, self._key, self._client_ca) if name)

    def _made(self) -> ssl.SSLContext | None:
        certificate, key, client_ca = self._certificate, self._key, self._client_ca
        if certificate is None or key is None:
            if (certificate, key, client_ca) != (None, None, None):
                problem = "needs both --tls-cert and --tls-key; --tls-client-ca needs them too"
                raise InputError(problem, field="--tls-cert")
            return None
        made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            made.load_cert_chain(certificate, key, password=_no_password)
            if client_ca is not None:
                made.load_verify_locations(client_ca)
                made.verify_mode = ssl.CERT_REQUIRED
                # Without sessions to resume, each connection shows its certificate to the authority of today.
                made.options |= ssl.OP_NO_TICKET
                made.num_tickets = 0
        except FileNotFoundError:
            missing = next(name for name in (certificate, key, client_ca) if name and not Path(name).exists())
            raise InputError("no such file", file=missing) from None
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise InputError(f"cannot be used: {getattr(error, 'reason', None) or error}", file=certificate) from None
        return made


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Return what changes when a file is written or replaced, or a link to it is turned; ``None`` if it is gone."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _no_password() -> str:
    raise ValueError("the key is encrypted, which is not supported")
