"""The command `cyrene`: a thin surface over the host, for people and scripts."""

from cyrene_host.cli.program import main

__all__ = ["main"]
