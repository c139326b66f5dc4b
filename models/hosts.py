"""What a host in an address is: an IP address or a name, this machine or another."""

from __future__ import annotations

import ipaddress


def is_address(host: str) -> bool:
    """Whether a host is an IP address, without brackets, and not a name, which can be made to point anywhere."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_local(host: str) -> bool:
    """Whether a host is this machine, which no other machine reaches under it."""
    return host.lower() == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)
