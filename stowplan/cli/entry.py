"""Runs the application; errors become a line on stderr and an exit code."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextvars import copy_context

import typer

from stowplan.cli.app import app
from stowplan.cli.exit_codes import INTERRUPTED
from stowplan.models.errors import InternalError, StowplanError
from stowplan.models.messages import log
from stowplan.models.validation import in_plain_words


def run_app(arguments: Sequence[str] | None) -> int:
    """Run the application, on ``sys.argv`` by default, and return the exit code."""
    context = copy_context()  # what this command line sets ends with it

    def fail(message: str, code: int = 1) -> int:
        return context.run(_fail, message, code)

    try:
        code = int(context.run(app, arguments, standalone_mode=False) or 0)
        if sys.stdout is not None:
            sys.stdout.flush()
        # An interrupt is caught inside, and told by its exit code alone.
        return fail("interrupted", INTERRUPTED) if code == INTERRUPTED else code
    except typer.TyperException as error:
        message = error.format_message()
        return fail(_in_plain_words(message)) if message else 0
    except InternalError as error:
        return fail(f"internal error, please report it: {error}")
    except StowplanError as error:
        return fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        return fail("interrupted", INTERRUPTED)
    except RecursionError:
        return fail("the input is nested too deeply")
    except MemoryError:
        return fail("out of memory")
    except BrokenPipeError:
        # The reader has closed the pipe, as head does; nothing can be printed any more.
        sys.stderr.close()
        return 1
    except OSError as error:
        return fail(f"the answer cannot be written: {error.strerror}")


def _in_plain_words(message: str) -> str:
    """Return a message of the command line's parser in the words of all others: what is wrong; what would be right."""
    option, wrong, right = message.partition("Input should ")
    if wrong:
        return option + in_plain_words(wrong + right)
    message = re.sub(r"'([^']*)' is not one of (.*?)\.?$", r"is '\1'; must be one of \2", message)
    return message.replace("Value error, ", "")


def _fail(message: str, code: int) -> int:
    log(" ".join(message.split()), "error")
    return code
