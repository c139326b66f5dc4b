"""The glossary tells the truth: its terms are in the code, and words that were retired stay away."""

from __future__ import annotations

import functools
import io
import re
import tokenize
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"
PACKAGES = ("models", "plugins_compat", "optimizer", "instances", "plans", "stowplan", "benchmarks")
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

RETIRED = {
    "aiming": "sampling",
    "bag": "multiset",
    "breach": "constraint violation",
    "carve": "extract a sub-problem",
    "crew": "participants",
    "dear": "expensive",
    "earned": "Lagrange multipliers",
    "errand": "drain and admit",
    "exceeded": "violated",
    "excess": "constraint violation",
    "fined": "penalized",
    "fines": "side duals",
    "glance": "delta evaluation",
    "grain": "scale of fixed-point numbers",
    "heat": "node cost, temperature",
    "idea": "neighborhood",
    "imaging": "state builder",
    "judge": "evaluator, checker",
    "lookout": "precondition check",
    "mate": "related pod",
    "mended": "repaired",
    "neighbourhood": "neighborhood",
    "outlook": "screening",
    "overfill": "overload",
    "pooled": "surrogate",
    "pooling": "surrogate",
    "practice": "operator state",
    "purse": "budget",
    "race": "calibration",
    "rehearsal": "dry run",
    "rehearse": "dry run",
    "rent": "penalty",
    "roster": "pod index",
    "scene": "features",
    "severity": "penalty weight",
    "strain": "penalty",
    "suspect": "candidate violation",
    "suspicion": "screening",
    "tally": "counts",
    "trouble": "violation, failure",
    "unsteered": "unassisted",
    "walker": "chain",
    "welcome": "acceptance",
}
"""Words that identifiers, files, and folders no longer use, with the words that replaced them."""

ALLOWED = {
    ("neighbourhood", "instances/suites/roadef"): "the challenge's own name for a set of machines",
    ("excess", "stowplan/bench"): "distance above the best known value, which is no violation",
    ("excess", "stowplan/documents/bench.py"): "the field of the document that holds that distance",
    ("excess", "stowplan/report/bench.py"): "the column that shows that distance",
}
"""Uses with another meaning: word and the path that it is allowed below, with the reason."""


def sources() -> list[Path]:
    return [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]


def words_of(identifier: str) -> set[str]:
    """Split a name at underscores and capitals; a plural counts as its singular too."""
    words = {word.lower() for word in WORD.findall(identifier)}
    return words | {word.removesuffix("s") for word in words}


@functools.cache
def identifiers() -> dict[str, set[str]]:
    """Return the files of every identifier in the source; files and folders count as identifiers of themselves."""
    found = defaultdict(set)
    for file in sources():
        path = file.relative_to(ROOT).as_posix()
        for part in path.removesuffix(".py").split("/"):
            found[part].add(path)
        for token in tokenize.generate_tokens(io.StringIO(file.read_text(encoding="utf-8")).readline):
            if token.type == tokenize.NAME:
                found[token.string].add(path)
    return dict(found)


def rows() -> list[tuple[str, str, str, str]]:
    """Return the cells of the glossary's tables: term, meaning, source, where in the code."""
    lines = GLOSSARY.read_text(encoding="utf-8").splitlines()
    cells = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines if line.startswith("| ")]
    return [(a, b, c, d) for a, b, c, d in cells if a != "term" and not a.startswith("---")]


def test_there_is_a_glossary() -> None:
    assert len(rows()) > 100


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_every_term_is_in_the_code_and_has_a_source(row: tuple[str, str, str, str]) -> None:
    term, meaning, source, place = row
    assert term
    assert meaning
    assert source
    name = re.fullmatch(r"`(\w+)`", place)
    assert name, f"{place} is no identifier"
    assert name[1] in identifiers(), f"{name[1]} is nowhere in the source"


def test_terms_are_listed_once_and_in_order() -> None:
    text = GLOSSARY.read_text(encoding="utf-8")
    for group in text.split("\n## ")[1:]:
        terms = [line.split("|")[1].strip() for line in group.splitlines() if line.startswith("| ")][2:]
        keys = [re.sub(r"[^a-z ]", " ", term.lower()).split() for term in terms]
        assert keys == sorted(keys)
        assert len(set(terms)) == len(terms)


def test_retired_words_do_not_come_back() -> None:
    back = [
        f"{path}: {name} ({word}: say {RETIRED[word]})"
        for name, paths in identifiers().items()
        for word in sorted(words_of(name) & RETIRED.keys())
        for path in sorted(paths)
        if not any(word == allowed and path.startswith(below) for allowed, below in ALLOWED)
    ]
    assert not back, "\n".join(back)


def test_allowances_are_needed() -> None:
    """A reason whose use is gone is taken off the list."""
    used = {(word, path) for name, paths in identifiers().items() for word in words_of(name) for path in paths}
    idle = [key for key in ALLOWED if not any(word == key[0] and path.startswith(key[1]) for word, path in used)]
    assert not idle
