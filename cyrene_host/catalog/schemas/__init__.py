"""The JSON Schemas of tools: checked and closed when their plugin is loaded, compiled when first used."""

from cyrene_host.catalog.schemas.compiled import CompiledSchema
from cyrene_host.catalog.schemas.explain import Fault
from cyrene_host.catalog.schemas.rules import SchemaInvalidError, lookup

__all__ = ["CompiledSchema", "Fault", "SchemaInvalidError", "lookup"]
