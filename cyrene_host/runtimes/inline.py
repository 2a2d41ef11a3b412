"""The inline runtime: plugin code in the host's own interpreter, on the SDK's runner."""

from __future__ import annotations

from cyrene_host.catalog.sources import Source
from cyrene_sdk._worker.loading import Code
from cyrene_sdk._worker.runner import Runner

__all__ = ["InlineRuntime"]


class InlineRuntime(Runner):
    """The runner itself: inside the host there is nothing between a call and the plugin's code.

    Args:
        source: where the plugin's code is.
        grace_s: seconds between cancelling work and giving it up.
        threads: how many plain `def` methods of the plugin may run at once.
    """

    def __init__(self, source: Source, *, grace_s: float, threads: int) -> None:
        folder = str(source.folder) if source.folder else None
        super().__init__(Code(source.module, source.attribute, folder), grace_s=grace_s, threads=threads)

    async def close(self) -> None:
        """Let go of the plugin, so that it can be loaded afresh."""
        self.forget()
