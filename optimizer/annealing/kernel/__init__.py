"""Compiled kernels of local search: a problem and a placement as flat arrays, and the moves that change them.

Kernels are long formulas over many arrays, so these names are short, and mean the same in every file of this package:

====================  =============================================================================================
``s``                 the `SearchState`
``w``                 the `Chain`: random numbers, incumbent and scratch arrays of one Markov chain
``p``, ``other``      pods
``c``, ``e``          classes of pods; ``e`` is the class of a pod that moves the other way at the same time, or -1
``n``                 a node; node number ``N`` stands for "no node"
``q``                 a relation, that is a row of ``SearchState.relation``
``d``                 a domain of a topology, or -1
``r``, ``i``          a capacity; a curve, score or device rule of the node
``t``                 a tier; ``focus`` is the tier that the chain improves
``k``                 by how many pods a count changes: 1 for an arrival, -1 for a departure
``a``, ``b``, ``t``   in a domain: pods that are seekers and targets, seekers only, targets only
``at``                an index into an array; outside the kernels, the module ``layout``
====================  =============================================================================================
"""
