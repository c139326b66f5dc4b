"""``python -m stowplan``: the command line."""

from stowplan.cli import main

if __name__ == "__main__":
    main()
