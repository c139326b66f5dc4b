"""Input of a stranger, made from good input by changes that keep most of its structure, for every reader.

``python -m tests.support.fuzzing [--count 2000] [--seed 0] [--reader NAME]`` gives each reader such input in a process
of its own, and prints what did not end as it should: with an answer or with one line, within `SECONDS` of processor
time and `MEGABYTES`. ``--bombs`` gives each reader what is small, and large when it is read, instead.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import importlib
import io
import json
import os
import pkgutil
import random
import resource
import signal
import sys
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

import stowplan
from stowplan.applying.journal import ApplyJournal, read_journal
from stowplan.cli import run
from stowplan.models.errors import InputError
from stowplan.serving.journal import LeaseJournal
from stowplan.serving.protocol import BadRequest, all_pass, read_question, scores
from stowplan.serving.server import Server
from tests.support import good_input as good
from tests.support.clusters import node
from tests.support.extender import waiting
from tests.support.good_input import Content
from tests.support.malformed import config, listed
from tests.support.plans import shop

SECONDS, MEGABYTES = 5.0, 500
TOLD = 100
"""Inputs after which their number is told."""
MOST_PLACES = 5_000
"""Content with more parts is not changed any more: what multiplies it would take the time."""

# -- readers --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reader:
    """What reads input, and good input for it.

    Parameters
    ----------
    read
        Reads a file that lies in a folder with a good dump ``good.json``; what it refuses is raised as `InputError` or
        `BadRequest`.
    by_line
        The content is a list whose items are written one a line.
    suffix
        Of the file's name.
    """

    name: str
    good: Callable[[], list[Content]]
    read: Callable[[Path], object]
    by_line: bool = False
    suffix: str = ".json"


class Refused(Exception):
    """A command ended with an error; the text is what it printed on stderr."""


def command(*words: str) -> Callable[[Path], None]:
    """Return a reader that runs a command, in whose words ``FILE`` is the file and ``GOOD`` a good dump."""

    def read(path: Path) -> None:
        places = {"FILE": str(path), "GOOD": str(path.parent / "good.json"), "FOLDER": str(path.parent)}
        places |= {"TLP": str(path.parent / "tlp.json")}
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = run([places.get(word, word) for word in words])
        if code:
            raise Refused(err.getvalue() if not (words[0] == "validate" and out.getvalue()) else "stowplan: differs\n")

    return read


def _answer(path: Path) -> None:
    question = read_question(path.read_bytes())
    all_pass(question)
    scores(question, None)
    server = Server(shop(), LeaseJournal(path.with_suffix(".leases")))
    server.ledger.ask(question.asker, question.nodes, 1.0)


def _resume_serving(path: Path) -> None:
    path.chmod(0o600)
    made = shop()
    journal = LeaseJournal(path)
    journal.begin(made, Server(made, journal).ledger)
    journal.close()


def _resume_applying(path: Path) -> None:
    path.chmod(0o600)
    read_journal(path)
    with ApplyJournal(path):
        pass


SIMULATE = ("simulate", "GOOD")
SOLVE = ("solve", "GOOD", "-q", "-t", "0.2")
WHAT_IF = ("what-if", "GOOD", "-q", "-t", "0.2")
READERS = [
    Reader("dump", good.dumps, command("simulate", "FILE", "--all", "-o", "json")),
    Reader("folder", good.dumps, command("simulate", "FOLDER")),
    Reader("YAML dump", good.dumps, command("simulate", "FILE"), suffix=".yaml"),
    Reader("plan of a dump", good.dumps, command("verify", "FILE", "FILE")),
    Reader("configuration", good.configurations, command(*SIMULATE, "--config", "FILE"), suffix=".yaml"),
    Reader("measured load", good.loads, command(*SIMULATE, "--config", "TLP", "--metrics", "FILE")),
    Reader("shown plan", good.plans, command("show", "FILE", "-o", "markdown")),
    Reader("emitted plan", good.plans, command("emit", "FILE", "--to", "kubectl")),
    Reader("replayed plan", good.plans, command("replay", "FILE", "GOOD")),
    Reader("verified plan", good.plans, command("verify", "FILE", "GOOD")),
    Reader("leases", good.leases, _resume_serving, by_line=True),
    Reader("journal", good.records, _resume_applying, by_line=True),
    Reader("question", good.questions, _answer),
    Reader("trace", good.traces, command("validate", "FILE", "-q"), suffix=".jsonl"),
    Reader("cache events", good.events, command(*SIMULATE, "--cache-events", "FILE"), suffix=".yaml"),
    Reader("objective", good.objectives, command(*SOLVE, "-O", "FILE"), suffix=".yaml"),
    Reader("prices", good.prices, command(*SOLVE, "-O", "cost", "--prices", "FILE"), suffix=".yaml"),
    Reader("scenario", good.scenarios, command(*WHAT_IF, "-f", "FILE"), suffix=".yaml"),
    Reader("recommended requests", good.requests, command(*WHAT_IF, "--requests", "FILE")),
    Reader("platform", good.platforms, command("simulate", "FILE"), suffix=".yaml"),
    Reader("bundle", good.dumps, command("rerun", "FILE"), suffix=".zip"),
]


# -- changes --------------------------------------------------------------------------------------------------

ODD: list[Content] = [
    None,
    True,
    "",
    -1,
    0,
    2**63,
    2**200,
    -0.5,
    1e308,
    float("inf"),
    float("nan"),
    [],
    {},
    [[]],
    "1e999",
    "1Ki",
    "-1",
    "100000000000Ei",
    "\x00\x1b]0;x\x07",
    "\ud800",
    "\u202e",
    "é" * 300,
    "x" * 70_000,
    "2026-13-45T99:99:99Z",
    "9" * 5000,
    "../../etc/passwd",
    "${jndi}",
    "{{ 7 * 7 }}",
]


def places(content: Content) -> Iterator[tuple[Any, Any]]:
    """Yield every container with each of its keys or positions."""
    waiting_ = [content]
    while waiting_:
        one = waiting_.pop()
        inner = one.items() if isinstance(one, dict) else enumerate(one) if isinstance(one, list) else ()
        for key, value in inner:
            yield one, key
            waiting_.append(value)


def changed(content: Content, rng: random.Random) -> Content:
    """Return content with a few of its parts replaced, removed, renamed, repeated, exchanged, or nested."""
    whole = copy.deepcopy(content)
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3, 6])):
        with suppress(RecursionError):  # a copy of what is nested deeply by now
            _change(whole, rng)
    return whole


def _change(whole: Content, rng: random.Random) -> None:
    at = list(places(whole))
    if not at or len(at) > MOST_PLACES:
        return
    container, key = rng.choice(at)
    other, other_key = rng.choice(at)
    match rng.randrange(10):
        case 0 | 1 | 2:
            container[key] = copy.deepcopy(rng.choice(ODD))
        case 3:
            del container[key]
        case 4 if isinstance(container, dict):
            container[rng.choice(["", "x" * 300, "__class__", key.upper(), "\x1b[1m", "metadata"])] = container.pop(key)
        case 5:
            container[key] = copy.deepcopy(other[other_key])
        case 6:
            container[key] = [copy.deepcopy(container[key])] * rng.choice([0, 2, 50])
        case 7 if isinstance(container, list):
            container.extend(copy.deepcopy(container[key]) for _ in range(rng.choice([1, 3, 100])))
        case 8:
            for _ in range(rng.choice([1, 5, 150])):
                container[key] = [container[key]] if rng.random() < 0.5 else {"a": container[key]}
        case _:
            container[key] = str(container[key])[:100]


def written(content: Content, reader: Reader, rng: random.Random) -> bytes:
    """Write content as JSON or YAML, perhaps packed, cut short, or with some bytes changed."""
    if reader.by_line and isinstance(content, list):
        data = b"\n".join(_json(line) for line in content) + b"\n"
    elif reader.suffix == ".yaml" and rng.random() < 0.7:
        data = _yaml(content, rng)
    else:
        data = _json(content, indent=None if reader.suffix == ".jsonl" else rng.choice([None, 1]))
    if rng.random() < 0.25:
        data = _damaged(data, rng)
    if rng.random() < 0.1:
        data = rng.choice(
            [gzip.compress, lambda d: b"\xef\xbb\xbf" + d, lambda d: d.decode("utf-8", "replace").encode("utf-16")]
        )(data)
    if rng.random() < 0.04:
        data = rng.choice([*bombs().values()])
    if reader.suffix == ".zip":
        data = _bundle(data, rng)
    return data


def _json(content: Content, indent: int | None = None) -> bytes:
    try:
        return json.dumps(content, indent=indent).encode("utf-8", "surrogatepass")
    except RecursionError:
        return b"[" * 5000


def _yaml(content: Content, rng: random.Random) -> bytes:
    try:
        text = yaml.safe_dump(
            content, default_flow_style=rng.choice([True, False, None]), allow_unicode=rng.random() < 0.5
        )
    except (RecursionError, UnicodeError, yaml.YAMLError):
        return _json(content)
    lines = text.splitlines(keepends=True)
    for _ in range(rng.choice([0, 0, 1, 2])):
        odd = [
            "&a ",
            "*a\n",
            "<<: *a\n",
            "!!python/object:os.system x\n",
            "!!binary x\n",
            "- ",
            "? ",
            "---\n",
            "%YAML 9.9\n",
            "\t",
        ]
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(odd))
    return "".join(lines).encode("utf-8", "surrogatepass")


def _damaged(data: bytes, rng: random.Random) -> bytes:
    body = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(body) + 1)
        match rng.randrange(5):
            case 0:
                body[at:at] = bytes([rng.randrange(256)])
            case 1:
                del body[at : at + rng.randint(1, 40)]
            case 2:
                body[at:at] = body[at : at + rng.randint(1, 200)] * rng.choice([1, 100])
            case 3:
                body[at:at] = rng.choice(
                    [b"{", b"[", b'"', b"\x00", b"\\ud800", b"1e999", b"null", b"\xff", b"\n---\n"]
                )
            case _:
                del body[at:]
    return bytes(body)


@cache
def bombs() -> dict[str, bytes]:
    """Return inputs that are small, and large when they are read."""
    aliases = [b"a0: &a0 [x, x]\n", *(b"a%d: &a%d [*a%d, *a%d]\n" % (i, i, i - 1, i - 1) for i in range(1, 40))]
    found = {
        "blanks in gzip": gzip.compress(b" " * 300_000_000, 1),
        "brackets": b"[" * 200_000,
        "braces": b'{"a":' * 100_000,
        "indented lists": b"- " * 200_000 + b"x",
        "keys of keys": b"? " * 20_000,
        "aliases": b"".join(aliases),
        "digits": b'{"a": ' + b"9" * 2_000_000 + b"}",
    }
    for inner in (b"{},", b"[],", b"1,", b'"a",', b'{"kind":"Pod"},', b'{"a":{}},'):
        many = b'{"apiVersion":"v1","kind":"List","items":[' + inner * (60_000_000 // len(inner)) + b"{}]}"
        found[f"{inner.decode()} in gzip"] = gzip.compress(many, 1)
    return found


def _bundle(data: bytes, rng: random.Random) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "bundle.json",
            _json(changed({"apiVersion": "stowplan/v1", "kind": "Bundle"}, rng)) if rng.random() < 0.5 else data,
        )
        archive.writestr("snapshot.json", data if rng.random() < 0.9 else b" " * 300_000_000)
    return made.getvalue()


# -- trying ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """An input that did not end as it should.

    Parameters
    ----------
    what
        How it ended.
    """

    reader: str
    seed: str
    what: str


def input_of(reader: Reader, seed: str) -> bytes:
    """Return the input that a seed stands for."""
    rng = random.Random(seed)
    return written(changed(rng.choice(reader.good()), rng), reader, rng)


def tried(reader: Reader, seed: str, folder: Path) -> Found | None:
    """Give a reader an input in a process of its own; return how it ended if that is not as it should."""
    for old in folder.iterdir():
        old.unlink()
    (folder / "good.json").write_text(json.dumps(listed(node("n1"), node("n2"), waiting("new"))))
    profile = {"plugins": {"score": {"enabled": [{"name": "TargetLoadPacking"}]}}}
    (folder / "tlp.json").write_text(json.dumps(config(profiles=[profile])))
    path = folder / f"input{reader.suffix}"
    data = bombs()[seed] if seed in bombs() else input_of(reader, seed)
    path.write_bytes(_bundle(data, random.Random(seed)) if reader.suffix == ".zip" and seed in bombs() else data)
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        os.close(told)
        _read_and_tell(reader, path, tell)
    os.close(tell)
    with os.fdopen(told, "rb") as pipe:
        said = pipe.read().decode("utf-8", "replace")
    _, status, used = os.wait4(child, 0)
    took = used.ru_utime + used.ru_stime
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        what = f"no end within {SECONDS:g} s" if number == signal.SIGXCPU else signal.Signals(number).name
        return Found(reader.name, seed, what)
    if said:
        return Found(reader.name, seed, said)
    if used.ru_maxrss > MEGABYTES * 1024:
        return Found(reader.name, seed, f"{used.ru_maxrss // 1024} MB")
    return Found(reader.name, seed, f"{took:.1f} s") if took > SECONDS else None


def _read_and_tell(reader: Reader, path: Path, tell: int) -> None:
    """Read, in the child; write what is wrong, and end."""
    said = ""
    resource.setrlimit(resource.RLIMIT_CPU, (int(SECONDS) + 1, int(SECONDS) + 2))
    signal.alarm(60)  # where it waits, and takes no time
    # What asks for far more than it may is stopped before it takes the memory of others.
    limit = 4 << 30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.dup2(devnull, 2)
    try:
        reader.read(path)
    except (InputError, BadRequest) as error:
        said = _fault(str(error))
    except Refused as error:
        lines = [line for line in str(error).splitlines() if not line.startswith(("stowplan: warning", "  "))]
        said = _fault("\n".join(lines[-1:]) if lines else "nothing on stderr", str(error))
    except BaseException:
        said = traceback.format_exc()[-1500:]
    os.write(tell, said.encode("utf-8", "replace"))
    os._exit(0)


def _fault(line: str, whole: str = "") -> str:
    """Return what is wrong with the line of an error, if anything."""
    wrong = "\n" in line or not line or "internal error" in line or "Traceback" in whole or "out of memory" in line
    obeyed = any(not char.isprintable() for char in line) and bool(whole)
    return f"says {line[:300]!r}" if wrong or obeyed else ""


def _import_everything() -> None:
    """Import all modules here, so that no process of an input has to."""
    for module in pkgutil.walk_packages(stowplan.__path__, "stowplan."):
        if not module.name.endswith("__main__"):
            with suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(module.name)


def campaign(count: int, seed: int, readers: Sequence[Reader] = READERS) -> Iterator[Found | None]:
    """Try so many inputs, each reader in turn."""
    with TemporaryDirectory(prefix="stowplan-fuzzing-") as name:
        for i in range(count):
            reader = readers[i % len(readers)]
            yield tried(reader, f"{seed}/{reader.name}/{i}", Path(name))


def blasts(readers: Sequence[Reader], chosen: Sequence[str]) -> Iterator[Found | None]:
    """Try the chosen bombs on each reader."""
    with TemporaryDirectory(prefix="stowplan-fuzzing-") as name:
        for reader in readers:
            for bomb in chosen:
                yield tried(reader, bomb, Path(name))


def main() -> int:
    """Run a campaign, and print what it found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bombs", action="store_true")
    parser.add_argument("--bomb", choices=list(bombs()), action="append", help="these bombs alone")
    parser.add_argument("--reader", choices=[reader.name for reader in READERS], action="append")
    chosen = parser.parse_args()
    readers = [reader for reader in READERS if not chosen.reader or reader.name in chosen.reader]
    found: Counter[str] = Counter()
    blasting = chosen.bomb or (list(bombs()) if chosen.bombs else [])
    trials = blasts(readers, blasting) if blasting else campaign(chosen.count, chosen.seed, readers)
    count = 0
    _import_everything()
    for one in trials:
        count += 1
        if count % TOLD == 0:
            print(f"{count} inputs", flush=True)
        if one is not None:
            found[one.reader] += 1
            print(f"{one.reader}, seed {one.seed!r}: {one.what}", flush=True)
    print(f"{count} inputs for {len(readers)} readers: {found.total()} did not end as they should")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
