"""Bad input gets one clear line, and changes nothing."""

from __future__ import annotations

import pytest

from tests.support.malformed import CASES, DOCUMENT, Malformed, table


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_one_line_and_exit_code_1(case: Malformed) -> None:
    code, line = case.line()
    assert code == 1
    assert line.startswith("stowplan: ")
    assert "\n" not in line
    assert "Traceback" not in line


def test_the_documented_table_is_what_happens() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == "\n".join(table()) + "\n"


def test_there_are_at_least_25() -> None:
    assert len(CASES) >= 25
