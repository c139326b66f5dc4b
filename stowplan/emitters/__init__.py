"""From a plan to what other tools carry out: names in ``target.py``, emitters in ``registry.py``."""
