"""The number of the contract between a host and the SDK that a plugin was written with."""

__all__ = ["CONTRACT", "FIRST_WITH_PROGRESS"]

CONTRACT = 2

FIRST_WITH_PROGRESS = 2
"""From this one on a worker tells the progress of a ComplexTool when it is asked to (`idle` in the order)."""
