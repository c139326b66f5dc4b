"""What all documents share."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

API_VERSION: Literal["stowplan/v1"] = "stowplan/v1"


class Document(BaseModel):
    """A document or a part of one: camelCase on the wire, nothing unknown passes."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, extra="forbid")
