"""Writes the reference pages of plugins.json and cyrene.toml from the models that read them.

`python -m cyrene_host.catalog.reference docs` writes them into the folder `docs`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from cyrene_host.catalog.entries import Limits, McpServer, Permissions, Pin, PluginEntry, ToolOverride
from cyrene_host.catalog.plugins_file import PluginsDocument
from cyrene_host.catalog.secrets import SecretText
from cyrene_host.catalog.settings import Settings
from cyrene_host.catalog.tables import key_of

__all__ = ["pages", "plugins_json_page", "settings_page", "write_pages"]

_GENERATED = "<!-- Written by `python -m cyrene_host.catalog.reference docs`; change the models, not this page. -->"

_PLUGINS_INTRO = """# plugins.json

The plugins that a host loads. It is found at `--plugins`, else at the path in `CYRENE_PLUGINS`, else as
`plugins.json` in the current folder. It is a list of entries, or an object that holds one:

```json
{
  "plugins": [
    { "name": "hello" },
    { "name": "weather", "import": "cyrene_weather", "class": "Weather", "config": { "key": { "$env": "KEY" } } },
    { "name": "notes", "path": "plugins/notes", "tools": { "delete": { "danger_level": "high" } } },
    { "name": "files", "mcp": { "command": "mcp-files", "args": ["--root", "documents"] }, "activation": "lazy" }
  ]
}
```

The file is strict JSON (UTF-8, no comments) of at most 1 MiB, and nobody but its owner may be able to write it:
`chmod go-w plugins.json`. Every fault is told with its line, JSON pointer and a way to mend it, all of them at
once. A fault of syntax or of the top level stops the start (exit 2). A fault inside an entry makes that plugin
`blocked`; the others start. An entry that is there twice alike counts once; of two entries that differ and have
one name the second is not used.
"""

_SECRETS = """## Secrets

Wherever a value may be a secret, `{"$env": "NAME"}` stands for an environment variable and `{"$file": "path"}`
for the text of a file, without its last line break. A relative path starts at the folder of plugins.json.
A secret of at least 8 characters is replaced by `***` in logs, audit, HTTP answers and errors.
"""

_SETTINGS_INTRO = """# Settings

The settings of a host. They are read from `cyrene.toml`: at `--config`, else at the path in `CYRENE_CONFIG`,
else beside plugins.json. A variable such as `CYRENE_DANGER__HIGH=deny` overrides the file, and `--set` on the
command line overrides both. The text of a variable is a TOML value, or plain text.

As with plugins.json, nobody but its owner may be able to write the file, and every fault is told at once.
"""


def pages() -> dict[str, str]:
    """Return the pages by file name, as Markdown."""
    return {"plugins-json.md": plugins_json_page(), "settings.md": settings_page()}


def write_pages(folder: Path) -> None:
    """Write the pages into a folder."""
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


def plugins_json_page() -> str:
    """Return the reference of plugins.json."""
    parts: list[tuple[str, type[BaseModel]]] = [
        ("The file", PluginsDocument),
        ("An entry", PluginEntry),
        ("`mcp`", McpServer),
        ("`tools`, per tool", ToolOverride),
        ("`limits`", Limits),
        ("`pin`", Pin),
        ("`permissions`", Permissions),
    ]
    sections = [_section(title, model) for title, model in parts]
    return "\n".join([_GENERATED, "", _PLUGINS_INTRO, *sections, _SECRETS])


def settings_page() -> str:
    """Return the reference of cyrene.toml, with a heading for each setting."""
    return "\n".join([_GENERATED, "", _SETTINGS_INTRO, *_setting_lines()])


def _section(title: str, model: type[BaseModel]) -> str:
    lines = [f"## {title}", "", model.__doc__.strip().splitlines()[0] if model.__doc__ else "", ""]
    lines += ["| key | value | default | meaning |", "|---|---|---|---|"]
    for name, field in model.model_fields.items():
        key = key_of(name, field)
        spelled = "`class` (or `struct`)" if key == "class" else f"`{key}`"
        cells = [spelled, _value(field), _default(field), field.description or ""]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*lines, ""])


def _setting_lines() -> Iterator[str]:
    for table, field in Settings.model_fields.items():
        model = field.annotation
        assert isinstance(model, type)
        assert issubclass(model, BaseModel)
        yield f"## [{table}]\n\n{model.__doc__}\n"
        for name, setting in model.model_fields.items():
            variable = f"CYRENE_{table}__{name}".upper()
            yield f"### `{table}.{name}`\n\n{_sentence(setting.description or '')}\n"
            default = f"default: {_default(setting)}; " if setting.default is not None else ""
            yield f"Value: {_value(setting)}; {default}variable: `{variable}`\n"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _value(field: FieldInfo) -> str:
    return _kind(field.annotation) + "".join(_bounds(field.metadata))


def _kind(annotation: Any) -> str:
    if annotation == SecretText:
        return "text, or a secret"
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind(arguments[0])
    if origin in (Union, UnionType):
        return _kind(next(kind for kind in arguments if kind is not type(None)))
    if origin is Literal:
        return _either(arguments)
    if origin in (tuple, list):
        return "list of text" if arguments[0] is str else "list"
    if origin is dict:
        return "object"
    return _plain_kind(annotation)


def _plain_kind(kind: type) -> str:
    if issubclass(kind, Enum):
        return _either([member.value for member in kind])
    if issubclass(kind, BaseModel):
        return "object, see below"
    return {bool: "true or false", int: "whole number", float: "number", str: "text"}[kind]


def _either(values: Sequence[str]) -> str:
    return " or ".join(f'`"{value}"`' for value in values)


def _bounds(metadata: Sequence[Any]) -> Iterator[str]:
    words = {"gt": "above", "ge": "at least", "le": "at most"}
    for bound in metadata:
        yield from (f", {word} {getattr(bound, name)}" for name, word in words.items() if hasattr(bound, name))


def _default(field: FieldInfo) -> str:
    if field.is_required() or field.default_factory is not None or field.default is None:
        return ""
    return f"`{json.dumps(field.default)}`"


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
