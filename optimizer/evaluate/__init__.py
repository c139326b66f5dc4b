"""The reference meaning of every rule and term, in plain numpy.

No engine reports a value of its own: every placement it finds is evaluated here first.
"""

from stowplan.optimizer.evaluate.evaluation import ConstraintViolation, Evaluation, Evaluator

__all__ = ["ConstraintViolation", "Evaluation", "Evaluator"]
