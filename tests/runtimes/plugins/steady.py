"""A plugin that nothing is wrong with."""

from cyrene_sdk import BasePlugin, PluginMetadata, tool


class Steady(BasePlugin):
    meta = PluginMetadata(name="steady", version="1.0.0", description="is steady")

    @tool(read_only=True)
    async def steady(self, number: int) -> int:
        """Answer twice the number."""
        return 2 * number
