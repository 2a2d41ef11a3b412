"""The data types of the contract: frozen models whose JSON is what the Go SDK writes."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from cyrene_sdk.errors import ErrorKind

__all__ = [
    "DangerLevel",
    "Image",
    "PluginAuthor",
    "PluginMetadata",
    "ProgressStatus",
    "ToolComplexity",
    "ToolDefinition",
    "ToolProgress",
    "ToolResult",
    "Wire",
]

DEFAULT_TIMEOUT_MS = 8000


class ToolComplexity(StrEnum):
    """`simple`: one round, about 2 s. `complex`: runs long and reports progress."""

    SIMPLE = "simple"
    COMPLEX = "complex"


class DangerLevel(StrEnum):
    """How much harm a call can do; the operator's policy decides what each level may."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"

    @property
    def rank(self) -> int:
        """0 for low, 1 for medium, 2 for high."""
        return ("low", "medium", "high").index(self.value)


class ProgressStatus(StrEnum):
    """The state that one progress report tells."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Wire(BaseModel):
    """A frozen record with Go's JSON.

    `ALWAYS` names the keys that Go writes without `omitempty`; every other key is left out while it
    holds its default. `GO_ZERO` holds Go's zero value where ours differs: it is written for, and read
    as, a field that was never set. On reading, null means unset too.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True, extra="forbid", defer_build=True)
    ALWAYS: ClassVar[frozenset[str]] = frozenset()
    GO_ZERO: ClassVar[Mapping[str, Any]] = {}

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object (plain dicts, lists, strings, numbers) that `to_json` writes."""
        written: dict[str, Any] = {}
        for name, (key, default) in _written_as(type(self)).items():
            value = getattr(self, name)
            if name in self.GO_ZERO and name not in self.model_fields_set:
                if key in self.ALWAYS:
                    written[key] = self.GO_ZERO[name]
            elif key in self.ALWAYS or value != default:
                written[key] = _plain(value)
        return written

    def to_json(self) -> str:
        """Return the JSON text that the Go SDK would write (key order and spacing aside)."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, source: str | bytes | Mapping[str, Any], *, notes: list[str] | None = None) -> Self:
        """Read JSON text, or an object that was parsed already.

        Args:
            source: JSON text, or the parsed object.
            notes: receives one sentence for each unknown key, which is kept out.
        Raises:
            ValueError: not a JSON object, or a field of the wrong type (pydantic's ValidationError).
        """
        parsed = json.loads(source, parse_constant=_refuse) if isinstance(source, str | bytes) else dict(source)
        return cls.model_validate(parsed, context=[] if notes is None else notes)

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any, reading: ValidationInfo) -> Any:
        if not isinstance(value, dict):
            return value
        kept = {k: v for k, v in value.items() if v is not None and not (k in cls.GO_ZERO and v == cls.GO_ZERO[k])}
        if reading.context is not None:
            known = {field.serialization_alias for field in cls.model_fields.values()} | set(cls.model_fields)
            for key in [key for key in kept if key not in known]:
                reading.context.append(f"{cls.__name__}: unknown key '{key}' was left out")
                del kept[key]
        return kept


class PluginAuthor(Wire):
    """Who wrote a plugin. All three are free text and may be empty."""

    ALWAYS = frozenset({"name", "email", "url"})

    name: str = ""
    email: str = ""
    url: str = ""


class PluginMetadata(Wire):
    """What a plugin says of itself.

    `min_cyrene_version` is the lowest host version, empty for any. `dependencies` maps plugin names to
    version ranges (PEP 440; bare `1.2`, `^1.2`, `~1.2` are read). `category` is free text; known are
    tool, iot, knowledge, reminder, image.
    """

    ALWAYS = frozenset(
        {"name", "displayName", "version", "minCyreneVersion", "author", "description", "license", "category"}
    )
    GO_ZERO = {"name": "", "version": ""}

    name: str
    display_name: str = Field(default="", validation_alias="displayName", serialization_alias="displayName")
    version: str
    min_cyrene_version: str = Field(
        default="", validation_alias="minCyreneVersion", serialization_alias="minCyreneVersion"
    )
    author: PluginAuthor = Field(default_factory=PluginAuthor)
    description: str = ""
    license: str = ""
    keywords: list[str] = Field(default_factory=list)
    category: str = ""
    dependencies: dict[str, str] = Field(default_factory=dict)
    homepage: str = ""
    repository: str = ""

    if TYPE_CHECKING:  # so that checkers accept a plain str as the author

        def __init__(
            self,
            *,
            name: str,
            version: str,
            display_name: str = "",
            min_cyrene_version: str = "",
            author: PluginAuthor | str = "",
            description: str = "",
            license: str = "",  # noqa: A002 - the field's name
            keywords: list[str] = ...,
            category: str = "",
            dependencies: dict[str, str] = ...,
            homepage: str = "",
            repository: str = "",
        ) -> None: ...

    @field_validator("author", mode="before")
    @classmethod
    def _name_alone(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value


class ToolDefinition(Wire):
    """What a tool is and when to call it; a model decides by `description`.

    `parameters` and `returns` are JSON Schemas (2020-12). `timeout_ms` is None while unset: 8000 ms are
    then in effect for a simple tool. `triggers` are whole requests that should reach the tool (or
    `/regex/`), `not_when` requests that look like it but are not, `examples` argument objects.
    `secret_arguments` are never logged, `serial` makes the call a barrier in a batch, `makes` and
    `accepts` name media (`image`).
    """

    ALWAYS = frozenset({"id", "name", "displayName", "description", "category", "complexity", "parameters"})
    GO_ZERO = {"complexity": "", "parameters": None, "timeout_ms": 0, "danger_level": ""}

    id: str = ""
    name: str = ""
    display_name: str = Field(default="", validation_alias="displayName", serialization_alias="displayName")
    description: str = ""
    category: str = ""
    complexity: ToolComplexity = ToolComplexity.SIMPLE
    parameters: dict[str, Any] = Field(default_factory=dict)
    returns: dict[str, Any] = Field(default_factory=dict)
    timeout_ms: int | None = Field(default=None, gt=0)
    max_retries: int = Field(default=0, ge=0)
    danger_level: DangerLevel | None = None
    read_only: bool = False
    idempotent: bool | None = None
    triggers: list[str] = Field(default_factory=list)
    not_when: list[str] = Field(default_factory=list)
    examples: list[dict[str, Any]] = Field(default_factory=list)
    secret_arguments: list[str] = Field(default_factory=list)
    serial: bool = False
    makes: list[str] = Field(default_factory=list)
    accepts: list[str] = Field(default_factory=list)

    @property
    def limit_ms(self) -> int:
        """Milliseconds in effect for one attempt of a simple tool."""
        return self.timeout_ms or DEFAULT_TIMEOUT_MS


class Image(Wire):
    """An image as base64 text or as a URL, with its MIME type; exactly one of the two."""

    ALWAYS = frozenset({"mime"})

    mime: str = "image/png"
    base64: str = ""
    url: str = ""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if bool(self.base64) == bool(self.url):
            raise ValueError("an image needs exactly one of 'base64' and 'url'")
        return self


class ToolResult(Wire):
    """The outcome of one call. A model sees `output` of a success and `error` of a failure.

    A tool sets `success`, `output` or `error`, `data`, `images`, `retryable`, `effect` and the chat
    flags; the host fills the rest. `effect` says whether a failed call may have acted.
    """

    ALWAYS = frozenset({"tool_name", "success"})

    tool_name: str = ""
    success: bool = False
    output: str = ""
    error: str = ""
    duration_ms: int = 0
    data: Any = None
    images: list[Image] = Field(default_factory=list)
    error_kind: ErrorKind | None = None
    reason: str = ""
    error_id: str = ""
    retryable: bool = False
    effect: Literal["none", "unknown"] | None = None
    attempts: int = 0
    plugin: str = ""
    call_id: str = ""
    notes: list[str] = Field(default_factory=list)
    need_ai_reply: bool | None = None
    already_sent: bool = False
    send_result_text: bool = False
    no_reply: bool = False
    save_to_memory: bool = True


class ToolProgress(Wire):
    """One report of a running ComplexTool; `progress` goes from 0.0 to 1.0 and never falls."""

    ALWAYS = frozenset({"execution_id", "status", "progress"})
    GO_ZERO = {"status": ""}

    execution_id: str = ""
    status: ProgressStatus = ProgressStatus.RUNNING
    progress: float = 0.0
    message: str = ""
    error: str = ""
    result: ToolResult | None = None


@functools.cache  # pydantic reads the signature of a default's factory each time: 1 ms for one ToolDefinition
def _written_as(model: type[Wire]) -> dict[str, tuple[str, Any]]:
    """The JSON key and the default of each field."""
    fields = model.model_fields.items()
    return {name: (f.serialization_alias or name, f.get_default(call_default_factory=True)) for name, f in fields}


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _plain(value: Any) -> Any:
    if isinstance(value, Wire):
        return value.to_dict()
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return value.value if isinstance(value, StrEnum) else value
