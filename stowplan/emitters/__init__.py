"""From a plan to what other tools carry out: one file an executor; they are listed in ``registry.py``."""
