"""Words for messages and reports: numbers with their nouns, and names as a terminal may be given them."""

from __future__ import annotations


def plural(number: int, noun: str, nouns: str = "") -> str:
    """Write a number with its noun.

    Parameters
    ----------
    nouns
        The plural, where it is not the noun with an ``s``.
    """
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


_CONTROLS = [code for code in (*range(32), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"]
_TURNING = [*range(0x200E, 0x2010), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
"""Characters that turn the direction of what follows, so that a name reads as another."""
_SHOWN = {code: f"\\x{code:02x}" for code in _CONTROLS} | {code: f"\\u{code:04x}" for code in _TURNING}
_IN_JSON = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), *_TURNING)}


def printable(text: str) -> str:
    r"""Return text in which nothing is obeyed by a terminal: control characters are written out, as ``\x1b``."""
    return text.translate(_SHOWN)


def printable_json(document: str) -> str:
    """Return the same JSON with those control characters escaped that JSON need not escape."""
    return document.translate(_IN_JSON)
