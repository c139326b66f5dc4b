"""Machine reassignment, the subject of the ROADEF/EURO challenge 2012.

Processes with fixed requirements run on machines and may be moved, all at one instant, if that reduces the cost of the
machines' loads by more than the moves cost. The names here are those of the challenge's statement.
"""

from stowplan.instances.suites.roadef.checker import Account, account
from stowplan.instances.suites.roadef.files import Balance, Model, read_assignment, read_model, write_assignment
from stowplan.instances.suites.roadef.reassignment import Reassignment, reassignment

__all__ = [
    "Account",
    "Balance",
    "Model",
    "Reassignment",
    "account",
    "read_assignment",
    "read_model",
    "reassignment",
    "write_assignment",
]
