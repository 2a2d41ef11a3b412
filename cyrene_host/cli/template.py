"""The files of a new plugin: one that works at once, to be changed step by step."""

from __future__ import annotations

from collections.abc import Mapping
from string import Template

__all__ = ["files_of"]

_PYPROJECT = Template("""\
[build-system]
requires = ["hatchling>=1.27", "cyrene-sdk"]
build-backend = "hatchling.build"

[project]
name = "cyrene-plugin-$name"
version = "0.1.0"
description = "A Cyrene plugin."
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["cyrene-sdk"]

# How the host finds the plugin once it is installed.
[project.entry-points."cyrene.plugins"]
$name = "$module:$class_"

# Ships $module/cyrene-plugin.json, so that the host can list the tools without importing the plugin.
[tool.hatch.build.hooks.cyrene]

[tool.hatch.build.targets.wheel]
packages = ["$module"]

[tool.pytest.ini_options]
pythonpath = ["."]
""")

_MODULE = Template('''\
"""The plugin `$name`."""

from __future__ import annotations

from typing import Annotated

from cyrene_sdk import ArgumentError, BasePlugin, PluginMetadata, tool

__all__ = ["$class_"]


class $class_(BasePlugin):
    """Counts words, until you make something else of it."""

    meta = PluginMetadata(
        name="$name",
        version="0.1.0",
        description="Counts the words of a text.",
    )

    @tool(
        danger_level="low",
        read_only=True,
        triggers=["count the words of this text", "how many words does this have", "数一数这段话有多少个词"],
        not_when=["what does this word mean"],
        examples=[{"text": "one two three"}],
    )
    async def ${tool}(self, text: Annotated[str, "the text to count in"]) -> str:
        """Count the words of a text.

        Call it when the user asks how many words a text has; not when they ask what a word means.
        """
        if not text.strip():
            raise ArgumentError("the text is empty", path="/text")
        return f"{len(text.split())} words"
''')

_TEST = Template('''\
"""The plugin on its own: a decorated method is still a method."""

import asyncio

import pytest

from cyrene_sdk import ArgumentError
from $module import $class_


def test_it_counts_words() -> None:
    assert asyncio.run($class_().${tool}("one two three")) == "3 words"


def test_an_empty_text_is_refused() -> None:
    with pytest.raises(ArgumentError):
        asyncio.run($class_().${tool}(" "))
''')

_README = Template("""\
# cyrene-plugin-$name

A plugin for Cyrene. Its entry in `plugins.json`, while its folder is in `plugins/` beside that file:

```json
[{ "name": "$name" }]
```

```console
$$ cyrene check plugins/$name
$$ cyrene call ${tool} text="one two three"
3 words
$$ python -m pytest plugins/$name
```
""")


def files_of(name: str) -> Mapping[str, str]:
    """Return the text of each file of a new plugin, by its path in the plugin's folder.

    Args:
        name: an entry's name, such as `my-weather`.
    """
    words = [word for word in name.replace("-", "_").split("_") if word]
    module = f"cyrene_{'_'.join(words)}"
    class_ = "".join(word.capitalize() for word in words) + "Plugin"
    names = {
        "name": name,
        "module": module,
        "class_": class_ if class_.isidentifier() else f"Plugin{class_}",
        "tool": f"{'_'.join(words)}_words" if words[0][0].isalpha() else f"words_{'_'.join(words)}",
    }
    return {
        "pyproject.toml": _PYPROJECT.substitute(names),
        "README.md": _README.substitute(names),
        f"{module}/__init__.py": _MODULE.substitute(names),
        f"{module}/py.typed": "",
        f"tests/test_{'_'.join(words)}.py": _TEST.substitute(names),
    }
