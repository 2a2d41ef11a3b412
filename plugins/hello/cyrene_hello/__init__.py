"""A plugin that greets: the smallest complete example."""

from __future__ import annotations

from typing import Annotated

from cyrene_sdk import BasePlugin, PluginMetadata, tool

__all__ = ["HelloPlugin"]


class HelloPlugin(BasePlugin):
    """Greets a user by name."""

    meta = PluginMetadata(
        name="hello",
        display_name="打招呼",
        version="1.0.0",
        author="Cyrene",
        description="示例插件：向用户问好",
        license="MIT",
        keywords=["greeting", "问好"],
        category="tool",
    )

    @tool(
        display_name="打招呼",
        category="tool",
        danger_level="low",
        read_only=True,
        idempotent=True,
        triggers=[
            "你好",
            "帮我打个招呼",
            "跟小明问个好",
            "向大家打声招呼",
            "hello",
            "say hello to Ada",
            "greet my friend Tom",
            "give everyone a warm greeting",
        ],
        not_when=[
            "你好像生气了",
            "打招呼用英语怎么说",
            "写一个 hello world 程序",
            "how do you say hello in French",
            "write a hello world program",
            "why do people greet each other",
        ],
        examples=[{"name": "开拓者"}, {}],
    )
    async def hello(self, name: Annotated[str, "用户名字（可选）"] = "") -> str:
        """向用户打招呼。当用户说你好/嗨/哈喽，或请你向某人问好时调用；其他闲聊、翻译或写代码时不要调用。"""
        return f"{name or '开拓者'}，昔涟向你问好♪"
