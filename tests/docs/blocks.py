"""The code blocks of the README and of the pages: where they are, and what is done with each.

``python -m tests.docs.blocks`` writes every block that stands for a file anew: a comment before the block names it.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

_BLOCK = re.compile(
    r"^(?P<comment><!-- (?P<kind>file|part of): (?P<source>\S+) -->\n+)?"
    r"(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$",
    flags=re.M | re.S,
)


class Treatment(StrEnum):
    """What is done with a block."""

    IS_A_FILE = "are files of examples/, which are run"
    IS_PART_OF_A_FILE = "are parts of source files"
    RUN = "are run"
    COMMANDS = "are commands, parsed or run"
    PARSED = "are parsed"
    TEXT = "are text"


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    page: Path
    line: int
    language: str
    text: str
    source: Path | None = None
    whole: bool = True

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def treatment(self) -> Treatment:
        """What is done with it."""
        if self.source is not None:
            return Treatment.IS_A_FILE if self.whole else Treatment.IS_PART_OF_A_FILE
        treatments = {"python": Treatment.RUN, "console": Treatment.COMMANDS}
        treatments |= dict.fromkeys(("json", "yaml", "toml"), Treatment.PARSED)
        return treatments.get(self.language, Treatment.TEXT)


def blocks(page: Path) -> Iterator[Block]:
    """Iterate over the blocks of a page."""
    content = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(content):
        source = found["source"] and ROOT / found["source"]
        line = content.count("\n", 0, found.start("indent")) + 1
        text = re.sub(f"^{found['indent']}", "", found["text"], flags=re.M)
        yield Block(page, line, found["language"], text, source, found["kind"] != "part of")


ALL = [block for page in PAGES for block in blocks(page)]


@dataclass(frozen=True)
class Command:
    """One command of a console block."""

    block: Block
    words: tuple[str, ...]
    """The program and its arguments, without redirections."""
    output: str | None = None
    """File that its output goes to."""
    piped: bool = False
    """Whether its input is another one's output."""

    def __str__(self) -> str:
        return f"{self.block} {shlex.join(self.words)}"


def commands(block: Block) -> Iterator[Command]:
    """Iterate over the commands of a console block: what follows ``$``, up to the end of the line or the next pipe."""
    for line in re.findall(r"^\$ ((?:.*\\\n)*.*)$", block.text, flags=re.M):
        lexer = shlex.shlex(line.replace("\\\n", ""), posix=True, punctuation_chars="|>&")
        lexer.whitespace_split = True
        words: list[str] = []
        piped = False
        output = None
        for word in [*lexer, "|"]:
            if word == "|":
                yield Command(block, tuple(words), output, piped)
                words, piped, output = [], True, None
            elif words and words[-1] == ">":
                words.pop()
                output = word
            elif word != "&":
                words.append(word)


def summary() -> str:
    """Say what is done with how many blocks, and with how many commands."""
    counts = Counter(block.treatment for block in ALL)
    told = ", ".join(f"{counts[treatment]} {treatment}" for treatment in Treatment)
    return f"{len(ALL)} code blocks of {len(PAGES)} pages: {told}"


def write() -> None:
    """Put the files into the blocks that stand for them."""
    for page in PAGES:

        def replaced(found: re.Match[str]) -> str:
            if found["kind"] != "file":
                return found[0]
            before, _, _ = found[0].partition("```")
            text = (ROOT / found["source"]).read_text(encoding="utf-8")
            return f"{before}```{found['language']}\n{text}```"

        content = page.read_text(encoding="utf-8")
        if (written := _BLOCK.sub(replaced, content)) != content:
            page.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    write()
