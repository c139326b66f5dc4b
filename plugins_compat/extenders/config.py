"""What a ``KubeSchedulerConfiguration`` says about an extender."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def _seconds(value: Any) -> Any:
    """Read a duration as Go writes it, such as ``1m30s``."""
    if not isinstance(value, str):
        return value
    parts = list(_DURATION.finditer(value))
    if not parts or "".join(part[0] for part in parts) != value:
        raise ValueError(f"{value!r} is not a duration, such as 500ms or 1m30s")
    return sum(float(part["number"]) * _SECONDS[part["unit"]] for part in parts)


class _Config(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)


class ManagedResource(_Config):
    """A resource that makes an extender interested in a pod; it may be its alone to account for."""

    name: str
    ignored_by_scheduler: bool = False


class TLSConfig(_Config):
    """How to trust and to be trusted; data fields are base64, as in a kubeconfig."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str = ""
    key_data: str = ""
    ca_data: str = ""


class ExtenderConfig(_Config):
    """One extender. An empty verb means that it does not do that; the timeout is in seconds."""

    url_prefix: Annotated[str, Field(min_length=1, alias="urlPrefix")]
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    enable_https: Annotated[bool, Field(alias="enableHTTPS")] = False
    tls_config: Annotated[TLSConfig | None, Field(alias="tlsConfig")] = None
    http_timeout: Annotated[float, BeforeValidator(_seconds), Field(gt=0, alias="httpTimeout")] = 5.0
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False

    @model_validator(mode="after")
    def _weighs_something(self) -> ExtenderConfig:
        if self.prioritize_verb and self.weight <= 0:
            raise ValueError("must have a positive weight, since it prioritizes")
        return self
