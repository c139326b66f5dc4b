"""The glossary tells the truth: its terms are in the code, and words that were retired stay away."""

from __future__ import annotations

import functools
import io
import re
import tokenize
from collections import defaultdict
from pathlib import Path

import pytest

from tests.docs.blocks import PAGES

ROOT = Path(__file__).parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"
PACKAGES = ("models", "plugins_compat", "optimizer", "instances", "plans", "stowplan", "benchmarks")
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

RETIRED = {
    "aiming": "sampling",
    "bag": "multiset",
    "barred": "refused, forbidden",
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
    "hopeful": "candidate",
    "idea": "neighborhood",
    "imaging": "state builder",
    "judge": "evaluator, checker",
    "lonely": "unmatched, alone",
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
    "ring": "cycle, level",
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
"""Words that identifiers, files, folders, and texts no longer use, with the words that replaced them."""

RETIRED_IN_TEXTS = {
    "anybody": "what is meant",
    "nobody": "what is meant: no pod, no executor, no process",
    "settle": "decide, finish",
    "settled": "decided, finished",
    "somebody": "what is meant: a controller, another process",
    "stand": "be, mean",
    "stood": "be",
    "verdict": "result",
    "whoever": "what is meant: the executor, the caller",
}
"""Words that docstrings, comments, messages, and pages no longer use; names between backticks may have them."""

ALLOWED = {
    ("neighbourhood", "instances/suites/roadef"): "the challenge's own name for a set of machines",
    ("excess", "stowplan/bench"): "distance above the best known value, which is no violation",
    ("excess", "stowplan/documents/bench.py"): "the field of the document that holds that distance",
    ("excess", "stowplan/report/bench.py"): "the column that shows that distance",
    ("excess", "stowplan/html_report/bench.py"): "the column that shows that distance",
    ("lonely", "optimizer/annealing/kernel"): "a changed kernel is compiled anew everywhere: for its next change",
}
"""Uses with another meaning: word and the path that it is allowed below, with the reason."""


ALLOWED_IN_TEXTS = {
    ("excess", "docs/command-line.md"): "distance above the best known value, which is no violation",
    ("excess", "docs/formats.md"): "the field and column of that distance",
    ("excess", "stowplan/bench/totals.py"): "the column of that distance",
    ("excess", "stowplan/report/bench.py"): "the column of that distance",
    ("excess", "stowplan/html_report/bench.py"): "the column of that distance",
    ("neighbourhood", "instances/suites/roadef"): "the challenge's own name for a set of machines",
    ("ring", "optimizer/column_generation/pricing/kernels.py"): "a ring buffer",
    ("stand", "models/bin_packing.py"): "a changed kernel is compiled anew everywhere: for its next change",
    ("stand", "optimizer/annealing/kernel"): "as above",
    ("unsteered", "stowplan/cli/commands/apply.py"): "the option of that name",
    ("verdict", "stowplan/report/replay.py"): "the column of the field of that name",
    ("nobody", "optimizer/compiled"): "a changed compiler compiles every kernel anew: for its next change",
    ("whoever", "optimizer/compiled"): "as above",
}
"""Uses in texts with another meaning, or for another reason: word and the path that it is allowed below."""

BRITISH = re.compile(
    r"(?:(?:capital|character|final|general|initial|linear|maxim|minim|normal|optim|organ|parallel|penal|priorit"
    r"|random|real|recogn|serial|special|summar|synchron|util|visual)is(?:e|ed|es|er|ing|ation)(?![a-z])"
    r"|analys(?:e|ed|ing)\b|(?:canc|lab|lev|mod|trav)ell(?:ed|er|ing)(?![a-z])|(?:behavi|col|fav|hon|lab|neighb)our"
    r"|amongst|catalogue|centre|defence|judgement|learnt|licence|misspelt|whilst)|^grey$|^towards$",
    flags=re.IGNORECASE,
)
OTHERS_SPELL_SO = {
    "cancelled": "a function of GitHub's workflows",
    "neighbourhood": "the ROADEF/EURO challenge",
    "neighbourhoods": "the ROADEF/EURO challenge",
    "node_memory_utilisation": "a series of node-exporter's recording rules",
}
"""British spellings in names that are not ours, with their source."""


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


@functools.cache
def texts() -> dict[str, str]:
    """Return the texts of each file: strings and comments of sources, pages without blocks and names of the code."""
    found = {}
    for file in sources():
        with tokenize.open(file) as stream:
            tokens = list(tokenize.generate_tokens(stream.readline))
        kinds = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
        found[file.relative_to(ROOT).as_posix()] = "\n".join(token.string for token in tokens if token.type in kinds)
    for page in PAGES:
        text = re.sub(r"^( *)```.*?^\1```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        found[page.relative_to(ROOT).as_posix()] = re.sub(r"\]\([^)]*\)", "]", text)
    return {path: re.sub(r"`+[^`]*`+|\{[^{}]*\}", "", text) for path, text in found.items()}


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


def test_retired_words_are_not_in_texts() -> None:
    retired = RETIRED | RETIRED_IN_TEXTS
    back = [
        f"{path}: {word}: say {retired[word]}"
        for path, text in texts().items()
        for word in sorted(spoken(text) & retired.keys())
        if not any(word == allowed and path.startswith(below) for allowed, below in ALLOWED_IN_TEXTS)
    ]
    assert not back, "\n".join(back)


def spoken(text: str) -> set[str]:
    """Return the words of a text, in lower case; a plural or a third person counts as the other form too."""
    words = {word.lower() for word in re.findall(r"[A-Za-z]+", text)}
    return words | {word.removesuffix("s") for word in words}


def test_allowances_in_texts_are_needed() -> None:
    idle = [
        (word, below)
        for word, below in ALLOWED_IN_TEXTS
        if not any(path.startswith(below) and word in spoken(text) for path, text in texts().items())
    ]
    assert not idle


def test_spelling_is_american() -> None:
    folders = [ROOT / folder for folder in (*PACKAGES, "tests", "examples", "docs")]
    files = [file for folder in folders for kind in ("py", "md", "sh", "diff") for file in folder.rglob(f"*.{kind}")]
    found = {
        f"{file.relative_to(ROOT)}: {word}"
        for file in [*files, *PAGES]
        if file != Path(__file__)
        for word in set(re.findall(r"\w+", file.read_text(encoding="utf-8")))
        if BRITISH.search(word) and word.lower() not in OTHERS_SPELL_SO
    }
    assert not found, "\n".join(sorted(found))


def test_allowances_are_needed() -> None:
    """A reason whose use is gone is taken off the list."""
    used = {(word, path) for name, paths in identifiers().items() for word in words_of(name) for path in paths}
    idle = [key for key in ALLOWED if not any(word == key[0] and path.startswith(key[1]) for word, path in used)]
    assert not idle
