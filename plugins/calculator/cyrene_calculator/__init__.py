"""A plugin that works out arithmetic, floating or exact, within fixed bounds."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cyrene_calculator.answer import answer, text
from cyrene_calculator.evaluator import Evaluator
from cyrene_calculator.notation import MAX_CHARACTERS
from cyrene_sdk import BasePlugin, PluginMetadata, ToolResult, tool

__all__ = ["CalculatorPlugin"]


class CalculatorPlugin(BasePlugin):
    """Works out arithmetic expressions."""

    meta = PluginMetadata(
        name="calculator",
        display_name="计算器",
        version="1.0.0",
        author="Cyrene",
        description="计算器：浮点与精确算术",
        license="MIT",
        keywords=["arithmetic", "math", "计算"],
        category="tool",
    )

    def __init__(self) -> None:
        super().__init__()
        self._floating = Evaluator()
        self._exact = Evaluator(exact=True)

    @tool(
        display_name="计算器",
        category="tool",
        danger_level="low",
        read_only=True,
        idempotent=True,
        triggers=[
            "帮我算一下 12*(3+4)",
            "3 加 5 等于多少",
            "2 的 10 次方是多少",
            "根号 2 乘以 10 是多少",
            "calculate 12*(3+4)",
            "what is 12 times 7",
            "how much is 15% of 80",
            "what is the square root of 2",
            r"/\d\s*[+*×÷^]\s*\d/",
        ],
        not_when=[
            "今天是 2024-05-01 吗",
            "我的电话是 138-0013-8000",
            "给我讲讲计算机的历史",
            "my number is 555-0199",
            "they are open 24/7",
            "explain how calculators work",
        ],
        examples=[{"expression": "12*(3+4)"}, {"expression": "1/3+1/3", "exact": True}],
        returns={
            "type": "object",
            "properties": {
                "value": {"type": ["number", "null"], "description": "最接近的浮点数；超出浮点范围时为 null"},
                "exact": {"type": ["string", "null"], "description": "精确值：整数或分数；浮点结果为 null"},
            },
            "required": ["value", "exact"],
        },
    )
    async def calculator(
        self,
        expression: Annotated[
            str,
            Field(
                description="算术表达式，例如 12*(3+4)。运算符 + - * / // % ^（^ 是乘方），"
                "函数 sqrt sin log ln 等，常数 pi e。"
                "百分比写成小数：80 的 15% 是 80*0.15。",
                max_length=MAX_CHARACTERS,
            ),
        ],
        exact: Annotated[bool, "true 用分数和大整数精确计算（1/3+1/3 = 2/3）；默认用浮点数"] = False,
    ) -> ToolResult:
        """计算一个算术表达式并给出结果。当用户要求计算、求值时调用；只是提到数字、日期或电话号码时不要调用。"""
        evaluator = self._exact if exact else self._floating
        number = evaluator.evaluate(expression)
        return ToolResult(success=True, output=text(number), data=answer(number))
