"""The published JSON schemas of our documents; ``python -m stowplan.documents.schemas`` writes them down."""

from __future__ import annotations

import json
from pathlib import Path

from stowplan.models.plan import Plan

FOLDER = Path(__file__).parents[2] / "docs" / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, str]:
    """Return the text of each schema by file name."""
    schema = {"$schema": DIALECT, "title": "Plan", **Plan.model_json_schema(by_alias=True)}
    return {"plan.v1.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"}


if __name__ == "__main__":
    for name, text in schemas().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
