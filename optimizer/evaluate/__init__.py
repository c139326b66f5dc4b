"""The reference meaning of every rule and term, in plain numpy.

No engine reports a value of its own: every placement it finds is evaluated here first.
"""

from stowplan.optimizer.evaluate.evaluation import ConstraintViolation, Evaluation, Evaluator
from stowplan.optimizer.evaluate.one_move import OneMove

__all__ = ["ConstraintViolation", "Evaluation", "Evaluator", "OneMove"]
