"""Files that are written as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from stowplan.models.errors import InputError

OWN = 0o600
"""Mode of a file that its owner alone reads."""
PUBLIC = 0o644
"""Mode of a file that other users read too."""


def write_whole(data: bytes, path: Path, mode: int = OWN) -> None:
    """Replace a file; what was there stays if that fails, and no reader sees half of either.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", str(path)) from None
