"""Closing a schema: objects take the keys that it declares for them, and no others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import jsonschema_rs

from cyrene_host.catalog.schemas.rules import SchemaInvalidError, Survey, in_place

__all__ = ["OPEN_PART", "closed"]

OPEN_PART = "/allOf/0"
"""Where a schema that needs a fence stands inside the enforced one."""

_MAX_WORK = 50_000
_FENCES = "definitions"  # under this name every draft's meta-schema checks what it holds

_ITEMS = ("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains")
_OTHERS = ("additionalProperties", "unevaluatedProperties")
# What makes a schema matter to a fence.
_MATTERS = frozenset(("properties", "patternProperties", *_OTHERS, *_ITEMS))

_Group = dict[int, dict[str, Any]]  # the schemas that speak about one value, by id()


def closed(root: dict[str, Any], survey: Survey) -> dict[str, Any]:
    """Return the schema that is enforced: `root` closed, itself and every object inside it that declares keys.

    An object that says `additionalProperties` (or `unevaluatedProperties`) itself is left as it is, one that
    declares nothing stays free-form. Required keys count as declared.

    Args:
        root: plain JSON that belongs to the caller; changed in place where one object is described by one schema.
        survey: of this root.
    Raises:
        SchemaInvalidError: the schema branches too much to be closed.
    """
    if survey.is_tangled:
        return _fenced(root, survey)
    for schema in survey.closable:
        schema["additionalProperties"] = False
    if "additionalProperties" not in root and "unevaluatedProperties" not in root:
        root["additionalProperties"] = False
        root.setdefault("properties", {})
    return root


def _fenced(root: dict[str, Any], survey: Survey) -> dict[str, Any]:
    """The schema unchanged, beside a second one that knows keys only.

    Where several schemas describe one object (`allOf`, `anyOf`, `oneOf`, `if`, `$ref`), each sees only its own
    keys: the fence takes those of all together, and conditions keep their meaning.
    """
    fence = _Fence(survey.targets).around(root)
    for holder, _ in survey.holders:
        holder["$ref"] = f"#{OPEN_PART}{holder['$ref'][1:]}"
    dialect = {"$schema": root.pop("$schema")} if "$schema" in root else {}
    root.pop("$id", None)
    return {**dialect, "allOf": [root, {"$ref": f"#/{_FENCES}/0"}], _FENCES: fence}


class _Fence:
    """Builds the fence: one entry for each set of schemas that may describe one value, so that recursion ends."""

    def __init__(self, targets: Mapping[int, Any]) -> None:
        self._targets = targets
        self._names: dict[frozenset[int], str] = {}
        self._waiting: list[_Group] = []
        self._work = 0

    def around(self, root: dict[str, Any]) -> dict[str, Any]:
        """All entries by name; the one for the root is '0'."""
        group = self._together([root]) or {id(root): root}  # it takes no keys at all where nothing declares any
        self._names[frozenset(group)] = "0"
        self._waiting.append(group)
        fences: dict[str, Any] = {}
        # Grows while it is read.
        for number, group in enumerate(self._waiting):
            fences[str(number)] = self._keys(group, is_root=number == 0)
        return fences

    def _entry(self, schemas: Iterable[Any]) -> dict[str, Any]:
        group = self._together(schemas)
        if not group:
            return {}
        members = frozenset(group)
        name = self._names.get(members)
        if name is None:
            name = self._names[members] = str(len(self._waiting))
            self._waiting.append(group)
        return {"$ref": f"#/{_FENCES}/{name}"}

    def _together(self, schemas: Iterable[Any]) -> _Group:
        """The schemas that matter among these and those in place within them."""
        seen: set[int] = set()
        group: _Group = {}
        left = [schema for schema in schemas if type(schema) is dict]
        while left:
            schema = left.pop()
            if id(schema) not in seen:
                seen.add(id(schema))
                left.extend(in_place(schema, self._targets, negated=False))
                if not _MATTERS.isdisjoint(schema) or "required" in schema:
                    group[id(schema)] = schema
        self._spend(len(seen))
        return group if any(not _MATTERS.isdisjoint(schema) for schema in group.values()) else {}

    def _spend(self, work: int) -> None:
        self._work += work
        if self._work > _MAX_WORK:
            raise SchemaInvalidError(
                "the schema has too many branches to tell which keys each object may have",
                where="",
                mend="say 'additionalProperties' in its objects, or take fewer alternatives",
            )

    def _keys(self, group: _Group, *, is_root: bool) -> dict[str, Any]:
        members = list(group.values())
        named = _named(members)
        by_pattern = _collected(members, "patternProperties")
        self._spend(len(members) * (1 + len(named)))
        fence = self._named_keys(members, named, by_pattern)
        others = _others(members)
        if any(other is not False for other in others):
            fence["additionalProperties"] = self._entry(others)
        elif is_root or any(schema.get("properties") or schema.get("patternProperties") for schema in members):
            fence.setdefault("properties", {})
            fence["additionalProperties"] = False
        if items := _items(members):
            fence["items"] = self._entry(items)
        return fence

    def _named_keys(
        self, members: list[dict[str, Any]], named: dict[str, list[Any]], by_pattern: dict[str, list[Any]]
    ) -> dict[str, Any]:
        fence: dict[str, Any] = {}
        is_matched = _matcher(by_pattern)
        # One name may match several patterns: they share one entry, with what the matching names say.
        matched = [sub for subs in by_pattern.values() for sub in subs]
        matched += [sub for name, subs in named.items() if is_matched(name) for sub in subs]
        if named:
            fence["properties"] = {
                name: self._entry([*subs, *_others(members, name), *(matched if is_matched(name) else ())])
                for name, subs in named.items()
            }
        if by_pattern:
            fence["patternProperties"] = {pattern: self._entry(matched) for pattern in by_pattern}
        return fence


def _others(members: list[dict[str, Any]], name: str | None = None) -> list[Any]:
    """The schemas for keys that are not declared beside them."""
    return [m[keyword] for m in members if name not in m.get("properties", ()) for keyword in _OTHERS if keyword in m]


def _named(members: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Each declared key with the schemas for its value; required ones count, or nothing would ever fit."""
    named = _collected(members, "properties")
    for schema in members:
        required = schema.get("required")
        for name in required if type(required) is list else ():
            named.setdefault(str(name), [])
    return named


def _collected(members: list[dict[str, Any]], keyword: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for schema in members:
        held = schema.get(keyword)
        for name, sub in held.items() if type(held) is dict else ():
            found.setdefault(name, []).append(sub)
    return found


def _items(members: list[dict[str, Any]]) -> list[Any]:
    held = [schema[keyword] for schema in members for keyword in _ITEMS if keyword in schema]
    return [sub for subs in held for sub in (subs if type(subs) is list else [subs]) if type(sub) is dict]


def _matcher(patterns: Collection[str]) -> Callable[[str], bool]:
    if not patterns:
        return lambda _: False
    schema = {"anyOf": [{"pattern": pattern} for pattern in patterns]}
    return jsonschema_rs.validator_for(schema, offline=True, pattern_options=jsonschema_rs.RegexOptions()).is_valid
