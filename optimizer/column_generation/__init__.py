"""Column generation: bounds and placements from patterns, the multisets of pods that fit on one node."""

from stowplan.optimizer.column_generation.engine import PatternEngine, PatternOutcome

__all__ = ["PatternEngine", "PatternOutcome"]
