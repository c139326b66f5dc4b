"""Custom resources against their published definition, as strictly as an API server that warns of unknown fields."""

from __future__ import annotations

from typing import Any

import jsonschema


def mistakes(definition: dict[str, Any], resource: dict[str, Any]) -> list[str]:
    """Return what is wrong with a resource by its ``CustomResourceDefinition``: path and reason, in order."""
    version = resource["apiVersion"].rpartition("/")[2]
    spec = definition["spec"]
    if (spec["group"], spec["names"]["kind"]) != (resource["apiVersion"].partition("/")[0], resource["kind"]):
        return [f"apiVersion, kind: the definition is of {spec['group']}, {spec['names']['kind']}"]
    schemas = {one["name"]: one["schema"]["openAPIV3Schema"] for one in spec["versions"] if one["served"]}
    if version not in schemas:
        return [f"apiVersion: the definition serves {', '.join(schemas)}"]
    validator = jsonschema.Draft202012Validator(_strict(schemas[version]))
    found = validator.iter_errors({name: value for name, value in resource.items() if name != "metadata"})
    return sorted(f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in found)


def _strict(schema: Any) -> Any:
    """Return a structural schema in which unknown fields are mistakes, and null is one where it is not allowed.

    What ``allOf``, ``anyOf``, ``oneOf``, and ``not`` say of values names no fields of its own, and stays as it is.
    """
    if not isinstance(schema, dict):
        return schema
    strict = dict(schema)
    for word in ("items", "additionalProperties"):
        if word in strict:
            strict[word] = _strict(strict[word])
    if "properties" in strict:
        strict["properties"] = {name: _strict(one) for name, one in strict["properties"].items()}
    open_to_more = "additionalProperties" in strict or strict.get("x-kubernetes-preserve-unknown-fields")
    if strict.get("type") == "object" and not open_to_more:
        strict["additionalProperties"] = False
    if strict.get("x-kubernetes-int-or-string"):
        text = {key: value for key, value in strict.items() if key != "anyOf"} | {"type": "string"}
        strict = {"anyOf": [{"type": "integer"}, text]}
    if strict.get("nullable"):
        strict = {"anyOf": [{"type": "null"}, strict]}
    return strict
