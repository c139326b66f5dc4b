"""Constructive heuristics in plain NumPy: insertion of pending pods, ejection, emptying of nodes, steepest descent.

They need no compiled code and no tuning, take about a second at any size, and give every search a start to improve on.
"""

from stowplan.optimizer.constructive.warm_start import warm_start

__all__ = ["warm_start"]
