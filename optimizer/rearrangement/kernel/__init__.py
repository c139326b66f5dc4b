"""Compiled kernels of the rearranging walk: pods as individuals, legality and cost as flat arrays of plain integers.

The names mean the same in every file of this package:

==================  ===============================================================================================
``m``               the `WalkModel`: what does not change
``s``               the `WalkState`: the placement, and what follows from it
``p``, ``q``        pods
``c``, ``e``        classes of pods; class number ``C`` means no pod, and needs nothing
``a``, ``b``, ``t`` nodes: of a pod now, where it goes, where a pod goes that makes room
``r``, ``k``, ``j`` a capacity, a curve of loads, a piece of a curve
``g``, ``d``        a relation, a domain of its topology or -1
==================  ===============================================================================================
"""
