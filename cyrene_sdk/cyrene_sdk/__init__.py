"""Write plugins for the Cyrene host."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyrene_sdk.context import CurrentCall, current_call
    from cyrene_sdk.errors import (
        ArgumentError,
        CyreneError,
        DefinitionError,
        ErrorKind,
        ModelRetry,
        NoCurrentCallError,
        ToolError,
        ToolFailure,
        Transient,
    )
    from cyrene_sdk.plugin import BasePlugin, ConfigError
    from cyrene_sdk.protocols import (
        ComplexTool,
        HasConfigSchema,
        HostAPI,
        Plugin,
        PluginConfig,
        Report,
        Storage,
        Tool,
    )
    from cyrene_sdk.threads import wait_for
    from cyrene_sdk.tools import FunctionComplexTool, FunctionTool, complex_tool, function_tool, tool
    from cyrene_sdk.types import (
        DangerLevel,
        Image,
        PluginAuthor,
        PluginMetadata,
        ProgressStatus,
        ToolComplexity,
        ToolDefinition,
        ToolProgress,
        ToolResult,
    )

__all__ = [
    "ArgumentError",
    "BasePlugin",
    "ComplexTool",
    "ConfigError",
    "CurrentCall",
    "CyreneError",
    "DangerLevel",
    "DefinitionError",
    "ErrorKind",
    "FunctionComplexTool",
    "FunctionTool",
    "HasConfigSchema",
    "HostAPI",
    "Image",
    "ModelRetry",
    "NoCurrentCallError",
    "Plugin",
    "PluginAuthor",
    "PluginConfig",
    "PluginMetadata",
    "ProgressStatus",
    "Report",
    "Storage",
    "Tool",
    "ToolComplexity",
    "ToolDefinition",
    "ToolError",
    "ToolFailure",
    "ToolProgress",
    "ToolResult",
    "Transient",
    "complex_tool",
    "current_call",
    "function_tool",
    "tool",
    "wait_for",
]

_MODULES = ("errors", "context", "types", "protocols", "tools", "plugin", "threads")


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the errors alone then cost no pydantic (100 ms)."""
    if name in __all__:
        for module in map(import_module, (f"{__name__}.{home}" for home in _MODULES)):
            if name in module.__all__:
                value = globals()[name] = getattr(module, name)
                return value
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
