"""The compiled schemas of one tool, or what is wrong with them."""

from __future__ import annotations

from cyrene_host.catalog.definitions import CatalogTool
from cyrene_host.catalog.schemas import CompiledSchema, SchemaInvalidError

__all__ = ["compile_schemas"]


def compile_schemas(tool: CatalogTool) -> tuple[CompiledSchema, CompiledSchema | None]:
    """Compile what a tool's arguments and its data are checked against; the second is None without `returns`.

    Raises:
        SchemaInvalidError: one of the two cannot be used; it names the plugin and the tool.
    """
    definition = tool.definition
    try:
        parameters = CompiledSchema(definition.parameters)
        return parameters, CompiledSchema(definition.returns, close=False) if definition.returns else None
    except SchemaInvalidError as error:
        error.plugin = tool.plugin
        error.where = f"tool '{tool.id}', its schema" + (f", {error.where}" if error.where else "")
        raise
