"""Write plugins for the Cyrene host."""

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
from cyrene_sdk.protocols import ComplexTool, HasConfigSchema, HostAPI, Plugin, PluginConfig, Storage, Tool
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
