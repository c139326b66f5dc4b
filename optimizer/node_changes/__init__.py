"""Column generation over changes of single nodes, for searches with few moves: bounds for every limit, where to search.

A *change* is what one node loses and gains. With few moves almost every node stays as it is, so few changes matter,
and a linear program over those found so far (the Dantzig–Wolfe master) has the multipliers of the Lagrangian dual: a
price for each kind of pod, and one for a move.
"""
