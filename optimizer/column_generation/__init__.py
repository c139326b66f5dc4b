"""Bounds and placements from patterns: what fits on one node, and how often each of them is used."""

from stowplan.optimizer.column_generation.engine import PatternEngine, PatternOutcome

__all__ = ["PatternEngine", "PatternOutcome"]
