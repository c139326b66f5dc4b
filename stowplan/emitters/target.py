"""What a plan can be written for: the names that the command line offers and the registry maps to emitters."""

from __future__ import annotations

from enum import StrEnum


class Target(StrEnum):
    """The tool that carries out a plan."""

    KUBECTL = "kubectl"
    DESCHEDULER = "descheduler"
    KOORDINATOR = "koordinator"
    EXTENDER = "extender"
    PIN = "pin"
