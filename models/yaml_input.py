"""YAML as Kubernetes reads it, within bounds of nesting and of what aliases expand to."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

from stowplan.models.errors import InputError
from stowplan.models.input_bounds import MAX_DEPTH, MAX_EXPANSION, SMALL_EXPANSION, read_bounded, require_sparse

_ANCHOR = re.compile(rb"(?:^|[\s\[{,:\-?])&[^\s,\[\]{}]", re.MULTILINE)


def parse_yaml(data: bytes | str, name: str, what: str = "neither JSON nor YAML") -> Iterator[Any]:
    """Yield the documents of YAML as Kubernetes reads it.

    Parameters
    ----------
    what
        What the file is said to be if it is no YAML.

    Raises
    ------
    InputError
        With the line, if it is no YAML, is nested deeper than `MAX_DEPTH`, or expands to much more than is written.
    """
    text = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    require_sparse(text, name)
    try:
        loader = Loader(data)
        loader.has_anchors = _ANCHOR.search(text) is not None
        while loader.check_data():
            yield loader.get_data()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
        raise InputError(f"{where}is {what}: {problem}", file=name) from None
    except UnicodeError as error:
        raise InputError(f"is {what}: {error}", file=name) from None
    except RecursionError:
        raise InputError(f"is nested more than {MAX_DEPTH} levels deep", file=name) from None


def parse_one_yaml(data: bytes | str, name: str, what: str = "neither JSON nor YAML") -> Any:
    """Return the only document of YAML, or None if there is none; see `parse_yaml`."""
    documents = list(parse_yaml(data, name, what))
    if len(documents) > 1:
        raise InputError(f"is {what}: expected a single document, found {len(documents)}", file=name)
    return documents[0] if documents else None


def read_yaml(path: str) -> Any:
    """Return the only document of a YAML file, or None if it is empty.

    Raises
    ------
    InputError
        If it cannot be read, or is no YAML; see `parse_yaml`.
    """
    try:
        with open(path, "rb") as file:
            data = read_bounded(file, path)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from None
    return parse_one_yaml(data, path, "not YAML")


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A timestamp is a string, and ``1e+09`` is a number, which JSON allows as well.

    Attributes
    ----------
    has_anchors
        Whether the text may hold anchors, so that what aliases expand to has to be counted.
    """

    has_anchors = True
    _depth = 0

    def descend_resolver(self, parent: Any, index: Any) -> None:
        """Count one level more; the composer calls this for each node, and would take stack for each level."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            mark = parent.start_mark if parent is not None else None
            raise yaml.composer.ComposerError(None, None, f"nested more than {MAX_DEPTH} levels deep", mark)
        super().descend_resolver(parent, index)

    def ascend_resolver(self) -> None:
        """Count one level less."""
        self._depth -= 1
        super().ascend_resolver()

    def construct_document(self, node: yaml.Node) -> Any:
        """Build a document, unless its aliases expand to too much."""
        if self.has_anchors:
            _require_small(node)
        return super().construct_document(node)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Build a value; one that contradicts its tag, such as ``!!int x``, is an error of the document."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, KeyError, AttributeError, TypeError, OverflowError) as error:
            problem = f"{str(node.value)[:40]!r} is no value of {node.tag.rpartition(':')[2]}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _number(loader: Any, node: Any) -> int | float | str:
    """Read a number with an exponent, as Go writes large ones; one too large for a float is a word, such as a hash."""
    value = float(node.value)
    if not math.isfinite(value):
        return str(node.value)
    return int(value) if value.is_integer() else value


_EXPONENT = "tag:stowplan,exponent"
Loader.add_constructor(_EXPONENT, _number)
Loader.add_implicit_resolver(_EXPONENT, re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789"))


def _require_small(document: yaml.Node) -> None:
    """Refuse a document whose aliases expand to much more than is written, or to what contains them.

    What an alias names comes before it, so its size and depth are known when the alias is met; the recursion is
    as deep as the text is nested.
    """
    sizes: dict[int, tuple[int, int]] = {}
    inside: set[int] = set()
    written = 0

    def measure(node: yaml.Node) -> tuple[int, int]:
        """Return nodes and characters of what a node expands to, and how deep it is nested."""
        nonlocal written
        known = sizes.get(id(node))
        if known is not None:
            return known
        if id(node) in inside:
            raise _refused("an alias names what contains it", node)
        if isinstance(node, yaml.ScalarNode):
            size, depth = 1 + len(node.value), 1
            written += size
        else:
            inside.add(id(node))
            size, depth = 1, 0
            written += 1
            pairs = isinstance(node, yaml.MappingNode)
            for child in (part for pair in node.value for part in pair) if pairs else node.value:
                more, deeper = measure(child)
                size += more
                depth = max(depth, deeper)
            depth += 1
            inside.discard(id(node))
        sizes[id(node)] = size, depth
        return size, depth

    size, depth = measure(document)
    if depth > MAX_DEPTH:
        raise _refused(f"nested more than {MAX_DEPTH} levels deep", document)
    if size > SMALL_EXPANSION + MAX_EXPANSION * written:
        raise _refused(f"aliases expand to more than {MAX_EXPANSION} times what is written", document)


def _refused(problem: str, node: yaml.Node) -> yaml.composer.ComposerError:
    return yaml.composer.ComposerError(None, None, problem, node.start_mark)
