"""``python -m stowplan``: the command line."""

from stowplan.cli import main

main()
