"""The inline runtime: plugin code in the host's own interpreter, on the SDK's runner."""

from __future__ import annotations

from cyrene_sdk._worker.runner import Runner

__all__ = ["InlineRuntime"]


class InlineRuntime(Runner):
    """The runner itself: inside the host there is nothing between a call and the plugin's code."""

    pid: int | None = None
    """It has no process of its own."""

    async def close(self) -> None:
        """Let go of the plugin, so that it can be loaded afresh."""
        self.forget()
