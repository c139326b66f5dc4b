"""The command line. Nothing heavy is imported until a command runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from stowplan.cli.app import app
from stowplan.cli.exit_codes import INTERRUPTED


def main() -> None:
    """Run the command line and exit: 0 done, 1 error, 2 changes (asked for by --detailed-exitcode), 130 interrupted."""
    sys.exit(run())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, on ``sys.argv`` by default; whatever goes wrong on purpose is one line on stderr."""
    from stowplan.models.errors import InternalError, StowplanError

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
        # The reader went away, as head does; there is nobody left to tell.
        sys.stderr.close()
        return 1
    except OSError as error:
        return _fail(f"the answer cannot be written: {error.strerror}")


def _fail(message: str, code: int = 1) -> int:
    print(f"stowplan: {' '.join(message.split())}", file=sys.stderr)
    return code
