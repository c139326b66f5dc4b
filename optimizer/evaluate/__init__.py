"""The reference meaning of every rule and term, in plain numpy.

No engine reports a value of its own: whatever it found is evaluated here before anyone sees it.
"""

from stowplan.optimizer.evaluate.evaluation import ConstraintViolation, Evaluation, Evaluator

__all__ = ["ConstraintViolation", "Evaluation", "Evaluator"]
