"""Many plans of random clusters carried out by ``apply`` while chance decides, and what came of them.

``python -m tests.support.campaign none [--plans 200] [--seed 0]``: plans of ``plan --steer none``, with a scheduler
that takes any of several best nodes. Told are the share of plans that come to their end, how often the gain that is
kept lies in the range that ``replay`` gave for nine of ten runs, plans that end worse than they began, cordons, waves.

``python -m tests.support.campaign extender [--plans 200] [--seed 0]``: steered plans. ``apply`` is killed at random
requests and started again, and so is ``serve``; meanwhile a workload may be scaled down or rolled out, new pods may not
be ready for a while, pods of one owner wait for nodes, and the status of budgets may lag. A run that stops since pods
elsewhere make it worse is started once more with ``--allow-elsewhere``. Told are pods deleted twice, or although their
budget had no more to give, why plans did not end, and how often the rest was feasible nevertheless.
"""
