"""Writes manifests as readable YAML."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

Manifest = dict[str, Any]


class _Dumper(yaml.SafeDumper):
    """Writes text of several lines as a block, and repeats shared values instead of using aliases."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def stream(manifests: Iterable[Manifest]) -> str:
    """Return manifests as a YAML stream."""
    return yaml.dump_all(manifests, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
