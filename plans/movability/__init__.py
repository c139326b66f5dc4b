"""Who can be moved, by whom, and at what price.

What a pod *is* ties it to its node (`stowplan.models.snapshot.tied`). Beyond that, executors have their rules, budgets
can forbid an eviction for good, and owners say in annotations whom they want left alone. A plan that moves such a pod
cannot be carried out, so they are found before anything is solved.
"""
