"""Input of a stranger that is made to exhaust stack, time, or memory ends with one line."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from stowplan.cli import run
from stowplan.documents.reading import read_content
from stowplan.instances.load import load
from stowplan.instances.metrics.read import read_metrics
from stowplan.models.errors import InputError
from stowplan.plugins_compat.profiles import read_configuration
from stowplan.settings.objective import read_objective
from stowplan.settings.prices import node_prices

SECONDS = 5.0

READERS: dict[str, Callable[[str], object]] = {
    "dump": load,
    "metrics": lambda path: read_metrics(path, ()),
    "configuration": read_configuration,
    "plan": read_content,
    "objective": read_objective,
    "prices": lambda path: node_prices(path, ()),
}


def deep(levels: int = 40_000) -> bytes:
    return b"kind: Pod\nspec: " + b"[" * levels + b"]" * levels


def deep_blocks(levels: int = 40_000) -> bytes:
    return b"- " * levels + b"x\n"


def alias_bomb(levels: int = 12) -> bytes:
    """Return nine lists of nine lists of … in some hundred bytes: 9**12 words."""
    lines = [b"a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [b"a%d: &a%d [%s]" % (i, i, b", ".join([b"*a%d" % (i - 1)] * 9)) for i in range(1, levels)]
    return b"\n".join(lines) + b"\n"


def listed_bomb(levels: int = 12) -> bytes:
    """Return the same as lists in lists, each of which the reader of dumps looks into."""
    inner = b"&a0 [x, x]"
    for i in range(1, levels):
        inner = b"&a%d [%s%s]" % (i, inner, b", *a%d" % (i - 1) * 9)
    return b"- " + inner + b"\n"


ATTACKS = {
    "flow": deep(),
    "blocks": deep_blocks(),
    "aliases": alias_bomb(),
    "aliased lists": listed_bomb(),
    "alias of what contains it": b"a: &a [*a]\n",
    "long texts": b"a: &a '" + b"x" * 1_000_000 + b"'\nb: [" + b", ".join([b"*a"] * 1000) + b"]\n",
    "brackets of JSON": b'{"kind": "List", "items": ' + b"[" * 100_000,
    "arrays of JSON": b"[" * 100_000,
    "values that contradict their tag": b"a: !!int x\n",
    "digits": b"a: " + b"9" * 5000 + b"\n",
}


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("reader", READERS)
def test_each_reader_ends_with_one_line(reader: str, attack: str, tmp_path: Path) -> None:
    path = tmp_path / "evil.yaml"
    path.write_bytes(ATTACKS[attack])
    before = time.monotonic()
    with pytest.raises(InputError) as refused:
        READERS[reader](str(path))
    assert time.monotonic() - before < SECONDS
    assert "evil.yaml" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_gzip_that_unpacks_to_hundreds_of_times_its_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "evil.json.gz"
    path.write_bytes(gzip.compress(b" " * (160 << 20)))
    with pytest.raises(InputError, match=r"evil.json.gz: unpacks to more than 100 times"):
        load(path)


def test_max_input_bounds_a_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "large.json"
    path.write_text(" " * 2000, encoding="utf-8")
    assert run(["--max-input", "1Ki", "solve", str(path)]) == 1
    assert "has more than 1,024 bytes" in capsys.readouterr().err


def test_a_link_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    (tmp_path / "pods.json").symlink_to(tmp_path / "lost")
    with pytest.raises(InputError, match=r"pods.json: is a symbolic link that leads nowhere"):
        load(tmp_path)
