"""Carrying a plan out in a live cluster.

::

    apply.py ── per wave ──> preconditions.py   does the cluster still look as the plan expects?
        │                      ├── drift.py        pods, nodes, budgets (`stowplan.plans.preconditions`)
        │                      └── dry_run.py      the scheduler's filters
        │                    cordons.py, extender_client.py
        │                    wave.py            evict, wait, look where replacements land
        │                      ├── eviction.py     one eviction, and what its answer means
        │                      └── landing.py      which new pod replaces which old one
        │                    replanning.py      around it all: the rest made anew, if it fits no more
        └── everything is written down before and after it is done: journal.py, folded into ledger.py
"""
