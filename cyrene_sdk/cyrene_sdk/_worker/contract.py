"""The number of the contract between a host and the SDK that a plugin was written with."""

__all__ = ["CONTRACT"]

CONTRACT = 1
