"""The nouns of stowplan: Kubernetes objects, snapshots, problems, objectives, results, errors.

Nothing in this package imports another package of the project; everything else may import it.
"""
