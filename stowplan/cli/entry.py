"""Runs the application, and turns what goes wrong into a line on stderr and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from stowplan.cli.app import app
from stowplan.cli.exit_codes import INTERRUPTED
from stowplan.models.errors import InternalError, StowplanError


def run_app(arguments: Sequence[str] | None) -> int:
    """Run the application, on ``sys.argv`` by default, and return the exit code."""
    try:
        code = int(app(arguments, standalone_mode=False) or 0)
        if sys.stdout is not None:
            sys.stdout.flush()
        # An interrupt is caught inside, and told by its exit code alone.
        return _fail("interrupted", INTERRUPTED) if code == INTERRUPTED else code
    except typer.TyperException as error:
        message = error.format_message()
        return _fail(message.replace("Value error, ", "")) if message else 0
    except InternalError as error:
        return _fail(f"internal error, please report it: {error}")
    except StowplanError as error:
        return _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", INTERRUPTED)
    except RecursionError:
        return _fail("the input is nested too deeply")
    except MemoryError:
        return _fail("out of memory")
    except BrokenPipeError:
        # The reader has closed the pipe, as head does; nothing can be printed any more.
        sys.stderr.close()
        return 1
    except OSError as error:
        return _fail(f"the answer cannot be written: {error.strerror}")


def _fail(message: str, code: int = 1) -> int:
    print(f"stowplan: {' '.join(message.split())}", file=sys.stderr)
    return code
