"""The order of moves: waves that are admissible in any order, as few as can be found.

The contract that every wave keeps is written in ``docs/plans.md``.
"""

from stowplan.plans.sequencing.problem import SequencingProblem, StuckMove, WaveSequence
from stowplan.plans.sequencing.sequence import sequence

__all__ = ["SequencingProblem", "StuckMove", "WaveSequence", "sequence"]
