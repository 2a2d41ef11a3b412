"""What an entry of plugins.json may say, and what each part of it must look like."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AliasChoices, Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from cyrene_host.catalog.secrets import SecretText
from cyrene_host.catalog.tables import Table, Texts, refusal
from cyrene_sdk.types import DangerLevel

__all__ = ["Limits", "McpServer", "Permissions", "Pin", "PluginEntry", "ToolOverride"]

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,47}")
_ALIAS = re.compile(r"[A-Za-z0-9_-]{1,64}")
_GO_PATH = re.compile(
    r"(github\.com|gitlab\.com|gitee\.com|bitbucket\.org|gopkg\.in|golang\.org|git\.yeij\.top)(/|$)|.*/"
)
_SOURCE_KEYS = ("import_", "class_", "path", "python")


class Limits(Table):
    """How much time, memory and company one plugin may have."""

    load_s: float = Field(default=30, gt=0, description="seconds to import the plugin")
    init_s: float = Field(default=30, gt=0, description="seconds for `init`")
    start_s: float = Field(default=30, gt=0, description="seconds for `start`")
    stop_s: float = Field(default=10, gt=0, description="seconds for `stop`")
    health_timeout_s: float = Field(default=5, gt=0, description="seconds for one health check")
    kill_grace_s: float = Field(default=2, ge=0, description="seconds between asking a worker to end and killing it")
    idle_s: float = Field(default=60, gt=0, description="seconds that a ComplexTool may run without reporting")
    max_duration_s: float = Field(default=600, gt=0, description="seconds that a ComplexTool may run in all")
    memory_mb: int = Field(default=1024, gt=0, description="memory of a worker process, in MiB")
    cpu_seconds: int | None = Field(default=None, gt=0, description="processor seconds of a worker; null: no limit")
    open_files: int = Field(default=256, gt=0, description="files and sockets that a worker process may have open")
    concurrency: int = Field(default=64, gt=0, description="calls that run at the same time")
    queue_size: int = Field(default=256, ge=0, description="calls that may wait for a place; more are `overloaded`")


class ToolOverride(Table):
    """What the operator decides about one tool; what is left out stays as the plugin defines it."""

    enabled: bool | None = Field(default=None, description="false hides the tool")
    timeout_ms: int | None = Field(default=None, gt=0, description="milliseconds for one attempt")
    max_retries: int | None = Field(default=None, ge=0, description="further attempts after the first")
    danger_level: Annotated[DangerLevel, Field(strict=False)] | None = Field(
        default=None, description="raises the danger; lowers it only with `trust` full"
    )
    alias: str | None = Field(default=None, description="the name that models see: letters, digits, `_`, `-`")
    triggers: Texts | None = Field(default=None, description="whole requests that should reach the tool, or `/regex/`")
    not_when: Texts | None = Field(default=None, description="requests that look like it but are not")

    @field_validator("alias")
    @classmethod
    def _fits_every_model(cls, alias: str | None) -> str | None:
        if alias is None or _ALIAS.fullmatch(alias):
            return alias
        raise refusal(f"'alias' is no tool name: '{alias[:80]}'", "use 1 to 64 letters, digits, '_' and '-'")


class Pin(Table):
    """The distribution that the operator has looked at; any other blocks the plugin."""

    version: str | None = Field(default=None, description="its version")
    sha256: str | None = Field(default=None, description="its digest, as `cyrene plugins lock` prints it")

    @field_validator("sha256")
    @classmethod
    def _is_digest(cls, digest: str | None) -> str | None:
        if digest is None or re.fullmatch(r"[0-9a-f]{64}", digest):
            return digest
        raise refusal("'sha256' is no SHA-256 digest", "write 64 hexadecimal digits in lower case")


class Permissions(Table):
    """What the sandbox allows; where it cannot be enforced, the plugin is blocked."""

    network: bool = Field(default=False, description="whether it may open network connections")
    read: Texts = Field(default=(), description="files and folders it may read besides its own code")
    write: Texts = Field(default=(), description="files and folders it may write besides its own data folder")
    exec: bool = Field(default=False, description="whether it may start programs")


class McpServer(Table):
    """An MCP server: a program to start, or the URL of one that runs."""

    command: str | None = Field(default=None, min_length=1, description="the program; no shell is involved")
    args: Texts = Field(default=(), description="its arguments")
    env: dict[str, SecretText] = Field(
        default={}, repr=False, description="its environment variables; values may be secrets"
    )
    url: str | None = Field(default=None, description="the URL of a server that runs, with `http://` or `https://`")
    headers: dict[str, SecretText] = Field(
        default={}, repr=False, description="HTTP headers for it; values may be secrets"
    )

    @field_validator("url")
    @classmethod
    def _is_http(cls, url: str | None) -> str | None:
        if url is None or re.match(r"https?://[^\s/]", url):
            return url
        raise refusal(f"'url' is no HTTP address: '{url[:80]}'", "begin it with https:// or http://")

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise refusal("an MCP server needs exactly one of 'command' and 'url'", "keep one of the two")
        if (self.headers and not self.url) or ((self.args or self.env) and not self.command):
            raise refusal(
                "'args' and 'env' belong to 'command', 'headers' to 'url'", "remove the keys of the other one"
            )
        return self


class PluginEntry(Table):
    """One plugin of plugins.json.

    The validation context may hold `where`, the entry's place for errors, and `base`, the folder of plugins.json
    with links resolved.
    """

    name: str = Field(
        description="the plugin's name in this host: lower-case letters, digits, `-` and `_`. "
        "Left out, it is the last part of `path` or `import`, without `cyrene_`"
    )
    import_: str | None = Field(
        default=None,
        validation_alias="import",
        description="its Python module, such as `cyrene_hello`; left out: an entry point",
    )
    path: str | None = Field(
        default=None, min_length=1, description="a folder beside plugins.json to import from, never outside"
    )
    class_: str | None = Field(
        default=None,
        validation_alias=AliasChoices("class", "struct"),
        description="its class; left out: the only plugin class",
    )
    python: str | None = Field(
        default=None,
        min_length=1,
        description="an interpreter or virtual environment that has `cyrene-sdk`; implies `process`",
    )
    mcp: McpServer | None = Field(default=None, description="an MCP server as a plugin, instead of Python code")
    enabled: bool = Field(default=True, description="false: listed, but not loaded")
    config: dict[str, Any] = Field(
        default={}, repr=False, description="what the plugin's `init` receives; values may be secrets"
    )
    runtime: Literal["process", "inline"] = Field(default="process", description="a worker process, or inside the host")
    activation: Literal["eager", "lazy"] = Field(
        default="eager", description="started with the host, or by a first call"
    )
    on_failure: Literal["continue", "abort"] = Field(default="continue", description="abort: the host ends if it fails")
    trust: Literal["listed", "full"] = Field(
        default="listed",
        description="full: you may lower its danger, run it inline unwarned, and believe an MCP server's hints",
    )
    tools: dict[str, ToolOverride] = Field(default={}, description="per tool, or `*` for all of them")
    limits: Limits = Field(default_factory=Limits, description="instead of `[limits]` in cyrene.toml")
    pin: Pin | None = Field(default=None, description="version and digest; another distribution blocks the plugin")
    permissions: Permissions | None = Field(default=None, description="what the sandbox allows")
    _where: str = PrivateAttr("")

    def model_post_init(self, context: Mapping[str, Any] | None) -> None:
        """Take `where` from the validation context."""
        self._where = (context or {}).get("where", "")

    @property
    def where(self) -> str:
        """File, line and JSON pointer of the entry; empty if it stands in no file."""
        return self._where

    @field_validator("name")
    @classmethod
    def _is_entry_name(cls, name: str) -> str:
        if _NAME.fullmatch(name):
            return name
        likely = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-_")[:48]
        hint = f"did you mean '{likely}'? " if likely else ""
        rule = "use up to 48 lower-case letters, digits, '-' and '_', beginning with a letter or digit"
        raise refusal(f"'{name[:80]}' is no plugin name", hint + rule)

    @field_validator("import_")
    @classmethod
    def _is_module(cls, module: str | None) -> str | None:
        if module is None or (all(map(_is_identifier, module.split("."))) and not _GO_PATH.match(module)):
            return module
        if _GO_PATH.match(module):
            last = module.rstrip("/").rpartition("/")[2].replace("-", "_")
            likely = last if _is_identifier(last) else "cyrene_hello"
            what = f"'import' is a Go import path or a file: '{module[:80]}'"
            raise refusal(what, f"give the Python module, such as '{likely}'")
        name, _, class_ = module.partition(":")
        spelled = f'"import": "{name}", "class": "{class_}"' if class_ else "a dotted name such as 'cyrene_hello'"
        raise refusal(f"'import' is no Python module: '{module[:80]}'", f"give the Python module: {spelled}")

    @field_validator("path")
    @classmethod
    def _is_inside(cls, path: str | None, reading: ValidationInfo) -> str | None:
        base = (reading.context or {}).get("base") or Path.cwd().resolve()
        if path is None or _stays_inside(base, path):
            return path
        what = f"'path' leads out of the folder of plugins.json: '{path[:80]}'"
        raise refusal(what, "move the folder beside plugins.json, or install the package and give 'import'")

    @field_validator("class_")
    @classmethod
    def _is_class(cls, class_: str | None) -> str | None:
        if class_ is None or _is_identifier(class_):
            return class_
        raise refusal(
            f"the class is no Python identifier: '{class_[:80]}'", "give the class's name, such as 'HelloPlugin'"
        )

    @field_validator("mcp")
    @classmethod
    def _is_alone(cls, mcp: McpServer | None, reading: ValidationInfo) -> McpServer | None:
        others = [f"'{key.rstrip('_')}'" for key in _SOURCE_KEYS if reading.data.get(key) is not None]
        if mcp is None or not others:
            return mcp
        raise refusal(f"'mcp' is instead of {', '.join(others)}", "keep 'mcp' or the Python code, or make two entries")

    @field_validator("runtime")
    @classmethod
    def _can_run_there(cls, runtime: str, reading: ValidationInfo) -> str:
        own = next((key for key in ("python", "mcp") if reading.data.get(key) is not None), None)
        if runtime == "process" or own is None:
            return runtime
        raise refusal(f"'{own}' means another process, but 'runtime' is 'inline'", f"remove 'runtime' or '{own}'")

    @field_validator("tools")
    @classmethod
    def _aliases_one_tool(cls, tools: dict[str, ToolOverride]) -> dict[str, ToolOverride]:
        if "*" in tools and tools["*"].alias is not None:
            raise refusal("'alias' under '*' would name every tool alike", "move it to one tool")
        return tools


def _is_identifier(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _stays_inside(base: Path, path: str) -> bool:
    try:
        return not Path(path).is_absolute() and (base / path).resolve().is_relative_to(base)
    except (OSError, ValueError, RuntimeError):  # a loop of links, or a NUL in the path
        return False
