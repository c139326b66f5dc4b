"""Compiled search on the exact score of a final state: `ScoreTables` as flat arrays, kept up to date as pods move.

====================  =============================================================================================
``f``                 the `Scores`
``c``                 a class of pods
``n``, ``h``          a node; the node that a pod is on while it is looked at
``k``                 counts of pods with a property, by domain
``d``                 a domain, or -1
``u``                 a score by usage
====================  =============================================================================================

The other names are those of `stowplan.optimizer.annealing.kernel`, whose state tells what is legal.
"""
