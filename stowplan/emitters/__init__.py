"""Plans as input of other tools: names in ``target.py``, emitters in ``registry.py``."""
