"""Ways from one placement to another: moves of single pods, over third nodes if need be, each legal in its turn."""

from stowplan.optimizer.reconfiguration.parameters import ReconfigurationParameters
from stowplan.optimizer.reconfiguration.way import Hop, find_way, knows

__all__ = ["Hop", "ReconfigurationParameters", "find_way", "knows"]
