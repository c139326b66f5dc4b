"""Names of container images."""

from __future__ import annotations


def normalized(image: str) -> str:
    """Add the tag that an image without one means."""
    return image if image.rfind(":") > image.rfind("/") else image + ":latest"
