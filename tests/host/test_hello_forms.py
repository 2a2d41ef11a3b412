"""The hello plugin of the first Go SDK, written class by class and in the short form, however it is listed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cyrene_host import Host

SEED_FORM = """
    from cyrene_sdk import PluginAuthor, PluginMetadata, ToolComplexity, ToolDefinition, ToolResult


    class HelloPlugin:
        def metadata(self):
            return PluginMetadata(
                name="hello", version="1.0.0", author=PluginAuthor(name="your-name"), description="示例插件：向用户问好"
            )

        def init(self, config):
            return None

        def start(self, host):
            return None

        def stop(self):
            return None

        def health(self):
            return None

        def tools(self):
            return [HelloTool()]


    class HelloTool:
        def definition(self):
            return ToolDefinition(
                id="hello", name="hello", display_name="打招呼",
                description="向用户打招呼。当用户说你好/嗨/哈喽时调用。",
                category="tool", complexity=ToolComplexity.SIMPLE,
                parameters={
                    "type": "object",
                    "properties": {"name": {"type": "string", "description": "用户名字（可选）"}},
                },
            )

        def execute(self, args):
            name = args.get("name", "")
            if name == "":
                name = "开拓者"
            return ToolResult(success=True, output=name + "，昔涟向你问好♪")

        def validate(self, args):
            return None

        def complexity(self):
            return ToolComplexity.SIMPLE
"""

ASYNC_SEED_FORM = SEED_FORM.replace("        def ", "        async def ")

SHORT_FORM = '''
    from typing import Annotated

    from cyrene_sdk import BasePlugin, PluginMetadata, tool


    class HelloPlugin(BasePlugin):
        meta = PluginMetadata(name="hello", version="1.0.0", author="me", description="says hello")

        @tool(danger_level="low", triggers=["帮我打个招呼", "say hello to Ada"])
        async def hello(self, name: Annotated[str, "用户名字（可选）"] = "") -> str:
            """向用户打招呼。当用户说你好/嗨/哈喽时调用；其他闲聊不要调用。"""
            return f"{name or '开拓者'}，昔涟向你问好♪"
'''

FORMS = {"seed": SEED_FORM, "async_seed": ASYNC_SEED_FORM, "short": SHORT_FORM}


def entry_of(listing: str, module: str) -> dict[str, str]:
    return {
        "import and struct": {"name": module, "import": module, "struct": "HelloPlugin"},
        "path": {"name": "greeter", "path": f"plugins/{module}"},
        "path, import and class": {
            "name": "greeter",
            "path": f"plugins/{module}",
            "import": module,
            "class": "HelloPlugin",
        },
        "name alone": {"name": module},
    }[listing]


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Take the plugin modules of one test out of the interpreter."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("hello_"):
            del sys.modules[name]


@pytest.mark.parametrize("listing", ["import and struct", "path", "path, import and class", "name alone"])
@pytest.mark.parametrize("form", sorted(FORMS))
async def test_each_form_answers_however_it_is_listed(
    form: str, listing: str, plugins_json: Callable[..., Path], forgotten: None
) -> None:
    module = f"hello_{form}"
    file = plugins_json([entry_of(listing, module)], **{module: FORMS[form]})

    async with Host.open(file) as host:
        for arguments in ({"name": "开拓者"}, {"name": ""}, {}, None, '{"name": "开拓者"}'):
            result = await host.call("hello", arguments)
            assert result.output == "开拓者，昔涟向你问好♪", result.error
        named = await host.call("hello", {"name": "昔涟"})

    assert named.success
    assert named.output == "昔涟，昔涟向你问好♪"
    assert named.tool_name == "hello"


async def test_the_bundled_hello_answers_from_its_entry_point(plugins_json: Callable[..., Path]) -> None:
    async with Host.open(plugins_json([{"name": "hello"}])) as host:
        result = await host.call("hello", {"name": "开拓者"})
        report = host.plugins.get("hello")

    assert result.output == "开拓者，昔涟向你问好♪"
    assert "entry point 'hello' of cyrene-plugin-hello" in report.source
