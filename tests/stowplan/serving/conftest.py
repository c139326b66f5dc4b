"""Certificates for servers and their clients."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """Make an authority, and certificates of a server and of a client."""
    made = trustme.CA()
    made.cert_pem.write_to_path(tmp_path / "ca.crt")
    for name in ("server", "client"):
        certificate = made.issue_cert("localhost", "127.0.0.1", common_name=name)
        certificate.private_key_pem.write_to_path(tmp_path / f"{name}.key")
        certificate.cert_chain_pems[0].write_to_path(tmp_path / f"{name}.crt")
    return tmp_path
