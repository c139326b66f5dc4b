"""Compiled code shared by engines: how it is compiled and cached, random numbers, bin packing."""
