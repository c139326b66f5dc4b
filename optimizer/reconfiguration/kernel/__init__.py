"""Compiled kernels: a walk that writes its steps down, and what makes such a record shorter.

The names mean the same as in the kernels of the rearranging walk.
"""
