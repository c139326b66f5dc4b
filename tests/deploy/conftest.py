"""Images, unpacked once; tests that need one are skipped where it is not built."""

from __future__ import annotations

import tomllib

import pytest

from tests.support.container import ROOT, Image, missing

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def unpacked(name: str, factory: pytest.TempPathFactory) -> Image:
    if why := missing(name):
        pytest.skip(why)
    image = Image.unpacked(name, VERSION, factory.mktemp("image") / name)
    if outdated := image.outdated():
        pytest.skip(f"build/image/{name} was made of other sources, such as {outdated[0]}: make image")
    return image


@pytest.fixture(scope="session")
def planner(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return unpacked("stowplan", tmp_path_factory)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return unpacked("stowplan-serve", tmp_path_factory)
