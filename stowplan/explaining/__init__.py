"""Explanations: why a pod is where it is, or nowhere; what keeps a node from being emptied; what holds pods back."""
