"""A scheduler extender that hands out a plan's tokens over HTTP."""
