"""Parameters of CP-SAT."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CpSatParameters:
    """How CP-SAT is asked.

    Parameters
    ----------
    symmetry_variables
        Variables of a model above which symmetry detection costs more than it gains.
    largest_span
        Range of an objective that combines several tiers; beyond, the solver's floating-point numbers get inexact.
    """

    symmetry_variables: int = 20_000
    largest_span: int = 2**40
