"""The settings of a host: command line over environment over cyrene.toml over defaults."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args, get_origin

from pydantic import Field, PrivateAttr, ValidationError
from pydantic.fields import FieldInfo

from cyrene_host.catalog.entries import Limits, PluginEntry
from cyrene_host.catalog.faults import FaultsError, FileFault, read_operator_file
from cyrene_host.catalog.secrets import SecretText
from cyrene_host.catalog.tables import Problem, Table, Texts, keys_of, problems
from cyrene_sdk.errors import CyreneError

__all__ = [
    "ChatSettings",
    "DangerSettings",
    "HookSettings",
    "HostLimits",
    "HostSettings",
    "ModelSettings",
    "ServeSettings",
    "Settings",
    "SettingsError",
    "ToolSettings",
    "find_settings_file",
    "limits_for",
    "read_settings",
]

_MAX_FILE_BYTES = 262_144
_VARIABLE = re.compile(r"CYRENE_([A-Z0-9]+(?:_[A-Z0-9]+)*)__([A-Z0-9_]+)")
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")

_Decision: TypeAlias = Literal["allow", "confirm", "deny"]


class HostSettings(Table):
    """Where the host keeps what outlives it."""

    state_dir: str | None = Field(
        default=None,
        min_length=1,
        description="the folder for manifests, storage and records; a relative one starts beside cyrene.toml. "
        "Left out: the platform's user state folder",
    )
    store_url: str | None = Field(
        default=None,
        min_length=1,
        description="the PostgreSQL database of executions, approvals and what plugins keep, "
        "`postgresql://user@server/database`; it needs `cyrene-host[postgres]`. Left out: SQLite in `state_dir`",
    )
    audit: bool = Field(default=True, description="keep a record of every call in the audit")


class HookSettings(Table):
    """Which hooks run."""

    enabled: Texts = Field(default=(), description="names of entry points in the group `cyrene.hooks`")


class DangerSettings(Table):
    """What a call of each danger level may do: run, ask a person first, or be refused."""

    low: _Decision = Field(default="allow", description="calls that can do no harm")
    medium: _Decision = Field(default="allow", description="calls that can do some harm")
    high: _Decision = Field(default="confirm", description="calls that can do much harm")
    undeclared: Literal["low", "medium", "high"] = Field(
        default="medium", description="the level of a tool that declares none"
    )


class ServeSettings(Table):
    """Where `cyrene serve` listens."""

    host: str = Field(default="127.0.0.1", min_length=1, description="the address to listen at")
    port: int = Field(default=8420, ge=0, le=65535, description="the port to listen at; 0: any free one")
    allowed_hosts: Texts = Field(
        default=(), description="further `Host` headers that are answered, needed for an address other than loopback"
    )


class ModelSettings(Table):
    """The model that `cyrene chat` and `/v1` talk to: an OpenAI-compatible endpoint."""

    base_url: str | None = Field(default=None, min_length=1, description="the endpoint, up to and with `/v1`")
    model: str | None = Field(default=None, min_length=1, description="the model's name there")
    api_key: SecretText | None = Field(
        default=None, repr=False, description='the key, best as `{"$env" = "NAME"}` or `{"$file" = "path"}`'
    )
    profile: str | None = Field(
        default=None, min_length=1, description="the model's peculiarities by name. Left out: told by `model`"
    )


class ToolSettings(Table):
    """Which tools exist for callers, and how models come to see and use them."""

    smart_select: bool = Field(default=True, description="offer only tools that fit the message")
    followup_ai_reply: bool = Field(default=True, description="let the model put results into words")
    rule_prompt_enabled: bool = Field(default=True, description="tell the model the rules of tool calls")
    loose_image_tool: bool = Field(default=False, description="take a drawing call written as text for a call")
    async_execute: bool = Field(default=False, description="end the turn while tools run; results follow")
    allow: Texts = Field(default=("*",), description="ids of the tools that may be called, such as `hello.*`")
    deny: Texts = Field(default=(), description="ids of tools that may not; overrides `allow`")
    select: Literal["strict", "normal", "lenient"] = Field(
        default="strict", description="how clear an intent must be; strict: no clear intent, no tools"
    )
    names: Literal["short", "qualified"] | None = Field(
        default=None,
        description="how models see tools: by short name, or as `plugin__tool`. "
        "Left out: short in chat, qualified at `/v1` and `/mcp`",
    )


class ChatSettings(Table):
    """How a chat turn runs."""

    max_tool_rounds: int = Field(default=10, ge=0, description="rounds of tool calls in one turn")
    repeat_guard: bool = Field(default=True, description="stop a model that repeats the same call")
    repeat_limit: int = Field(default=3, gt=0, description="how often the same call may be made in a turn")
    empty_output_retries: int = Field(default=1, ge=0, description="further attempts when the model answers nothing")
    turn_s: float = Field(default=300, gt=0, description="seconds for one turn")
    wait_s: float = Field(default=30, gt=0, description="seconds that a turn waits for a ComplexTool")
    concurrency: int = Field(default=8, gt=0, description="tool calls of a turn that run at the same time")
    result_chars: int = Field(default=20_000, gt=0, description="characters of a result that the model sees")


class HostLimits(Limits):
    """What each plugin may have unless its entry says otherwise, and the limits of all together."""

    stop_total_s: float = Field(default=30, gt=0, description="seconds to stop all plugins")
    health_every_s: float = Field(default=30, gt=0, description="seconds between two health checks")


class Settings(Table):
    """All settings of a host; every table is there, with its defaults."""

    host: HostSettings = Field(default_factory=HostSettings)
    hooks: HookSettings = Field(default_factory=HookSettings)
    danger: DangerSettings = Field(default_factory=DangerSettings)
    serve: ServeSettings = Field(default_factory=ServeSettings)
    model: ModelSettings = Field(default_factory=ModelSettings)
    tools: ToolSettings = Field(default_factory=ToolSettings)
    chat: ChatSettings = Field(default_factory=ChatSettings)
    limits: HostLimits = Field(default_factory=HostLimits)
    _folder: Path = PrivateAttr(default=Path())

    @property
    def folder(self) -> Path:
        """The folder of cyrene.toml, where relative paths of settings start; else the current one."""
        return self._folder

    def state_folder(self) -> Path:
        """Return where the host keeps its state, as an absolute path; the folder need not exist."""
        if self.host.state_dir is not None:
            return (self._folder / Path(self.host.state_dir).expanduser()).absolute()
        from platformdirs import user_state_path  # a host with a `state_dir` need not pay for it

        return user_state_path("cyrene", appauthor=False)


class SettingsError(FaultsError):
    """The settings cannot be used; `faults` has every fault of file, environment and overrides."""


def find_settings_file(
    given: Path | None, env: Mapping[str, str], *, plugins_file: Path | None, cwd: Path
) -> Path | None:
    """Return the path of cyrene.toml: the one given, else `CYRENE_CONFIG`, else beside plugins.json, else in `cwd`.

    Raises:
        SettingsError: a path was given, and there is nothing.
    """
    named = given or (Path(env["CYRENE_CONFIG"]) if env.get("CYRENE_CONFIG") else None)
    path = cwd / (named or (plugins_file.parent if plugins_file else cwd) / "cyrene.toml")
    if os.path.lexists(path):
        return path
    if named is None:
        return None
    wrong = "--config, or the path given to Host.open" if given else "or unset the environment variable CYRENE_CONFIG"
    raise SettingsError([FileFault(f"'{path}' does not exist", file=str(path), mend=f"correct {wrong}")])


def read_settings(path: Path | None, env: Mapping[str, str], overrides: Mapping[str, object] | None = None) -> Settings:
    """Read the settings from all their sources.

    `CYRENE_TOOLS__SMART_SELECT` sets `smart_select` of `[tools]`; its text is a TOML value, or a plain string.

    Args:
        path: cyrene.toml; None for no file.
        env: the environment.
        overrides: from the command line or the embedding program: `table.key` → value; text is read as in a variable.
    Raises:
        SettingsError: with every fault.
    """
    reading = _Reading(path)
    if path is not None:
        reading.read_file(path)
    for variable, text in env.items():
        named = _VARIABLE.fullmatch(variable)
        if named:
            reading.put(named[1].lower(), named[2].lower(), text, f"environment variable {variable}")
    for key, value in (overrides or {}).items():
        reading.override(key, value)
    return reading.result()


class _Reading:
    """The settings as they pile up, and which source each one that is not from the file has."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._text = ""
        self._values: dict[str, Any] = {}
        self._origins: dict[tuple[str | int, ...], str] = {}
        self._faults: list[CyreneError] = []

    def read_file(self, path: Path) -> None:
        try:
            content, distrust = read_operator_file(path, max_bytes=_MAX_FILE_BYTES)
            self._faults += distrust
            self._text = content.decode("utf-8-sig").replace("\r\n", "\n")
            self._values = tomllib.loads(self._text)
        except FileFault as fault:
            self._faults.append(fault)
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            self._faults.append(
                FileFault(f"{path.name} is not UTF-8 text", file=path.name, line=line, mend="save the file as UTF-8")
            )
        except (ValueError, RecursionError) as error:
            self._faults.append(_syntax_fault(error, path.name, self._text))

    def put(self, table: str, key: str, value: object, origin: str) -> None:
        """Set one key over what was there; text becomes what the key expects."""
        within = self._values.setdefault(table, {})
        if isinstance(within, dict):
            within[key] = _typed(table, key, value) if isinstance(value, str) else value
            self._origins[(table, key)] = origin

    def override(self, key: str, value: object) -> None:
        """Set one key, named `table.key`, over all other sources."""
        table, dot, name = key.partition(".")
        if dot:
            self.put(table, name, value, f"--set or overrides, {key}")
            return
        near = [
            f"'{table}.{name}'" for table in Settings.model_fields for name in _keys_in(table) if key in (table, name)
        ]
        mend = f"name table and key, such as {' or '.join(near[:3]) or repr('danger.high')}"
        self._faults.append(CyreneError(f"'{key[:80]}' is no setting", where="--set or overrides", mend=mend))

    def result(self) -> Settings:
        try:
            settings = _validated(self._values)
        except ValidationError as error:
            self._faults += [self._fault(problem) for problem in problems(error, Settings)]
            raise SettingsError(self._faults) from error
        if self._faults:
            raise SettingsError(self._faults)
        if self._path is not None:
            settings._folder = self._path.parent  # noqa: SLF001 - set by the one reader of the file
        return settings

    def _fault(self, problem: Problem) -> CyreneError:
        keys = tuple(key for key in problem.keys if isinstance(key, str))
        what, mend = _in_toml_words(problem.what, problem.mend, keys)
        line = _line_of(self._text, keys)
        origin = self._origins.get(keys[:2])
        if origin is None and line is None:
            origin = next((place for (table, _), place in self._origins.items() if table == keys[0]), None)
        if origin is not None:
            return CyreneError(what, where=origin, mend=mend)
        file = self._path.name if self._path else "cyrene.toml"
        return FileFault(what, file=file, pointer=".".join(keys), line=line, mend=mend)


def _validated(values: Mapping[str, Any]) -> Settings:
    """Check the tables that are given alone: to get ready for all of them takes pydantic 4 ms."""
    fields = Settings.model_fields
    if values.keys() <= fields.keys():
        with suppress(ValidationError):  # the check of all tables below tells every fault, with its place
            tables = {name: _table(name).model_validate(table) for name, table in values.items()}
            rest = {name: _table(name).model_construct() for name in fields if name not in values}
            return Settings.model_construct({*values}, **tables, **rest)
    return Settings.model_validate(values)


def limits_for(entry: PluginEntry, settings: Settings) -> Limits:
    """Return the limits of one plugin: what its entry sets, and `[limits]` for the rest."""
    own = entry.limits
    return Limits.model_construct(
        **{key: getattr(own if key in own.model_fields_set else settings.limits, key) for key in Limits.model_fields}
    )


def _typed(table: str, key: str, text: str) -> Any:
    """Read text as a TOML value, unless it is none or the setting is text itself."""
    try:
        read = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    setting = _keys_in(table).get(key)
    takes_text = setting is not None and _takes_text(setting.annotation)
    return text if len(read) > 1 or (takes_text and not isinstance(read["value"], str | dict)) else read["value"]


def _takes_text(annotation: Any) -> bool:
    if get_origin(annotation) in (tuple, Literal):
        return False
    return annotation is str or any(map(_takes_text, get_args(annotation)))


def _keys_in(table: str) -> dict[str, FieldInfo]:
    return keys_of(_table(table)) if table in Settings.model_fields else {}


def _table(name: str) -> type[Table]:
    return cast("type[Table]", Settings.model_fields[name].annotation)


def _in_toml_words(what: str, mend: str, keys: tuple[str, ...]) -> tuple[str, str]:
    if what.startswith("unknown key"):
        homes = [f"[{table}]" for table in Settings.model_fields if keys[-1] in _keys_in(table)]
        if homes:
            mend = f"put it under {' or '.join(homes)}"
        elif len(keys) == 1:
            what = f"unknown table [{keys[0]}]"
        else:
            what += f" in [{keys[0]}]"
    return what.replace("must be an object", "must be a table"), mend


def _line_of(text: str, keys: tuple[str, ...]) -> int | None:
    """Return the line on which the value at `keys` begins: tomllib tells no lines, so ever longer texts are read."""
    lines = text.split("\n")
    numbers = (number for number, line in enumerate(lines, 1) if keys and keys[-1] in line)
    return next((number for number in numbers if _is_set_by(lines, number, keys)), None)


def _is_set_by(lines: list[str], number: int, keys: tuple[str, ...]) -> bool:
    """Whether the value at `keys` is there when the statement on line `number` has ended."""
    for end in range(number, len(lines) + 1):
        try:
            found: Any = tomllib.loads("\n".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue
        for key in keys:
            if not isinstance(found, dict) or key not in found:
                return False
            found = found[key]
        return True
    return False


def _syntax_fault(error: Exception, file: str, text: str) -> FileFault:
    message = str(error)
    place = _PLACE.search(message)
    line = place and int(place[1] or text.count("\n") + 1)
    said = _PLACE.sub("", message)
    twice = "overwrite" in said or "twice" in said
    mend = "remove one of the two" if twice else "write key = value, with text in double quotes"
    column = f", column {place[2]}" if place and place[2] else ""
    return FileFault(f"{file} is no valid TOML: {said}{column}", file=file, line=line, mend=mend)
