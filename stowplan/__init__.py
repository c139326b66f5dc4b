"""The face of stowplan: the Python API and the command line."""
