"""What all models share that callers make: they are frozen, and wrong values get one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

from pydantic import ConfigDict, ValidationError

from stowplan.models.document import Document
from stowplan.models.html import html_table
from stowplan.models.validation import refusal


class Arguments(Document):
    """Arguments of a call, checked whenever they are made or copied.

    Raises
    ------
    InputError
        With the first field that cannot be used, and what would be right.
    """

    model_config = ConfigDict(frozen=True, loc_by_alias=False)

    def __init__(self, /, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise refusal(error) from None

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with other values, which are checked as those of the original were."""
        values = {name: getattr(self, name) for name in self.model_fields_set}
        try:
            return type(self)(**{**values, **(update or {})})
        except ValidationError as error:
            raise refusal(error) from None

    def changed(self) -> dict[str, Any]:
        """Return the fields whose values are not the defaults."""
        return {name: value for name, value in self if value != type(self).model_fields[name].get_default()}

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        yield from self.changed().items()

    def _repr_html_(self) -> str:
        return html_table(type(self).__name__, [(name, value) for name, value in self.__repr_args__() if name])
