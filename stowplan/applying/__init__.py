"""Carrying a plan out in a live cluster.

::

    apply.py ── per wave ──> looking.py    does the cluster still look as the plan expects?
        │                      ├── drift.py        pods, nodes, budgets
        │                      └── rehearsing.py   the scheduler's filters
        │                    cordoning.py, steering.py
        │                    wave.py       evict, wait, look where replacements land
        │                      ├── evicting.py     one eviction, and what its answer means
        │                      └── landing.py      which new pod replaces which old one
        └── everything is written down before and after it is done: journal.py, folded into ledger.py
"""
