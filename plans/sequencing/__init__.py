"""The order of moves: waves that are admissible in any order, as few as can be found.

The contract that every wave keeps is written in ``docs/plans.md``.
"""

from stowplan.plans.sequencing.sequence import sequence
from stowplan.plans.sequencing.task import Relocation, Sequencing, Step, Stuck, Task, keeps_name

__all__ = ["Relocation", "Sequencing", "Step", "Stuck", "Task", "keeps_name", "sequence"]
