"""Every reader ends with an answer or with one line, whatever it is given: a few inputs of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fuzzing import READERS, Reader, campaign, tried


@pytest.mark.parametrize("reader", READERS, ids=[reader.name for reader in READERS])
def test_changed_input_ends_as_it_should(reader: Reader) -> None:
    assert [found for found in campaign(2, 1, [reader]) if found is not None] == []


@pytest.mark.parametrize("bomb", ["{}, in gzip", "1, in gzip", "blanks in gzip", "digits"])
def test_what_is_large_when_it_is_read_is_refused(bomb: str, tmp_path: Path) -> None:
    readers = {reader.name: reader for reader in READERS}
    for name in ("dump", "verified plan"):
        assert tried(readers[name], bomb, tmp_path) is None
