"""The rules a tool's schema has to keep, checked in one pass over it: limits, patterns, references."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from cyrene_sdk.errors import CyreneError

__all__ = [
    "MAX_DEPTH",
    "MAX_PATTERN",
    "MAX_SCHEMAS",
    "SchemaInvalidError",
    "Survey",
    "evaluations",
    "in_place",
    "lookup",
]

MAX_DEPTH = 32
MAX_SCHEMAS = 2_000
MAX_PATTERN = 512

_SHOWN = 80

# How a keyword holds schemas: one (draft-07 `items` also a list), a list of them, an object of them; or none.
_ONE: Final = 1
_LIST: Final = 2
_MAP: Final = 3
_NONE: Final = 4

# Schemas for the same value.
_BRANCHES = dict.fromkeys(("allOf", "anyOf", "oneOf"), _LIST)
# The same, but closing them where they stand would change when they hold.
_CONDITIONS = {**dict.fromkeys(("if", "then", "else", "not"), _ONE), "dependentSchemas": _MAP, "dependencies": _MAP}
# Schemas for a part of the value, which another keyword may describe as well.
_OVERLAPS = {
    "patternProperties": _MAP,
    **dict.fromkeys(("unevaluatedProperties", "unevaluatedItems", "contains"), _ONE),
}
# Schemas for a part of the value that no other keyword beside them describes.
_PARTS = {
    "properties": _MAP,
    "prefixItems": _LIST,
    **dict.fromkeys(("additionalProperties", "propertyNames", "items", "additionalItems"), _ONE),
}
_STORES = {"$defs": _MAP, "definitions": _MAP}
_SPECIAL = dict.fromkeys(("$ref", "$dynamicRef", "$recursiveRef", "$id", "pattern"), _NONE)
_SHAPES = {**_BRANCHES, **_CONDITIONS, **_OVERLAPS, **_PARTS, **_STORES, **_SPECIAL}
_KEYWORDS = frozenset(_SHAPES)
_PLAIN_REFERENCE = re.compile(r"#/\$defs/[A-Za-z0-9_.-]+")
_IN_PLACE = frozenset((*_BRANCHES, *_CONDITIONS, "$ref"))

_Path = tuple[Any, ...]  # (path above, step), () at the top: cheap to extend, read only for an error


class SchemaInvalidError(CyreneError):
    """A schema that cannot be used; `where` is the JSON pointer of the place inside it."""


class Survey:
    """One pass over every schema inside a schema.

    Args:
        root: plain JSON; it is read, never changed.
    Raises:
        SchemaInvalidError: a limit, pattern or reference breaks a rule. What breaks JSON Schema itself is left
            to the compiler.
    Attributes:
        holders: the schemas with a `$ref`.
        targets: what each holder refers to, by its `id()`.
        closable: schemas of objects that declare keys and say nothing about others.
        is_tangled: several schemas may describe one object, so that none can be closed for itself.
        has_choices: some value is described by alternatives.
        needs_compiler: only compiling it tells whether it can be used, since it has patterns, odd references or a
            dialect; of any other schema its meta-schema does.
    """

    __slots__ = (
        "_count",
        "_root",
        "_seen",
        "closable",
        "has_choices",
        "holders",
        "is_tangled",
        "needs_compiler",
        "targets",
    )

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._count = 0
        self._seen: set[int] = set()
        self.holders: list[tuple[dict[str, Any], _Path]] = []
        self.targets: dict[int, Any] = {}
        self.closable: list[dict[str, Any]] = []
        self.is_tangled = False
        self.has_choices = False
        self.needs_compiler = "$schema" in root
        self._visit(root, (), 1)
        # Grows while it is read: a target may lie where no keyword led, such as '#/components/schemas/Pet'.
        for holder, path in self.holders:
            target = self.targets[id(holder)] = self._target(holder["$ref"], path)
            if type(target) is dict and id(target) not in self._seen:
                self._visit(target, path, 1)
        if self.holders:
            _check_chains(self.holders, self.targets)

    def _visit(self, schema: dict[str, Any], path: _Path, depth: int) -> None:
        self._seen.add(id(schema))
        own = others = 0  # schemas that say something about the parts of this value
        for keyword, held in schema.items():
            shape = _SHAPES.get(keyword)
            if shape is None:
                continue
            if shape is _NONE:
                others += self._special(keyword, held, schema, path)
                continue
            inner = self._visit_held(_held(held, shape), (path, keyword), depth)
            if keyword in _PARTS:
                own = 1
            elif keyword in _BRANCHES:
                others += inner
                self._weigh_branches(keyword, held, inner)
            elif keyword not in _STORES:
                self._weigh_other(keyword, held, inner, path)
        if "properties" in schema or "patternProperties" in schema:
            own = 1
            self._weigh_keys(schema)
        if own + others > 1 or (others and schema is self._root):
            self.is_tangled = True

    def _visit_held(self, held: Iterable[tuple[Any, Any]], path: _Path, depth: int) -> int:
        """How many of the schemas have something to look at inside them."""
        inner = 0
        for key, sub in held:
            self._count += 1
            if type(sub) is dict and not _KEYWORDS.isdisjoint(sub):  # _has_structure, without the call
                inner += 1
                step = path if key is None else (path, key)
                if depth >= MAX_DEPTH:
                    raise _too_big(f"is more than {MAX_DEPTH} schemas deep", step)
                self._visit(sub, step, depth + 1)
        if self._count > MAX_SCHEMAS:
            raise _too_big(f"has more than {MAX_SCHEMAS} schemas inside it", path)
        return inner

    def _special(self, keyword: str, held: Any, schema: dict[str, Any], path: _Path) -> int:
        """Check a keyword that holds no schema; 1 if another schema speaks about the same value through it."""
        if keyword == "$ref":
            self.holders.append((schema, path))
            return 1
        self.needs_compiler = True
        if keyword == "pattern":
            _check_pattern(held, (path, keyword))
        elif keyword == "$id":
            if path:
                raise SchemaInvalidError(
                    "a '$id' inside the schema begins another document",
                    where=_pointer((path, keyword)),
                    mend="leave it out: references are of the form '#/$defs/Name'",
                )
        else:
            raise _bad_reference(f"the schema uses '{keyword}'", (path, keyword))
        return 0

    def _weigh_branches(self, keyword: str, held: Any, inner: int) -> None:
        if keyword == "allOf":
            return
        self.has_choices = True
        # An object that one branch refuses may pass by another, unless the others take no objects.
        if inner and not all(_takes_no_object(branch) for branch in held if not _has_structure(branch)):
            self.is_tangled = True

    def _weigh_other(self, keyword: str, held: Any, inner: int, path: _Path) -> None:
        if inner:
            self.is_tangled = True
        if keyword == "patternProperties" and type(held) is dict:
            self.needs_compiler = True
            for pattern in held:
                _check_pattern(pattern, ((path, keyword), pattern))

    def _weigh_keys(self, schema: dict[str, Any]) -> None:
        if "additionalProperties" in schema or "unevaluatedProperties" in schema:
            return
        declared = schema.get("properties")
        required = schema.get("required")
        if type(declared) is dict and type(required) is list and not declared.keys() >= {*map(str, required)}:
            self.is_tangled = True
        if declared or schema.get("patternProperties"):
            self.closable.append(schema)

    def _target(self, reference: Any, path: _Path) -> Any:
        place = (path, "$ref")
        if type(reference) is not str or not (reference == "#" or reference.startswith("#/")):
            raise _bad_reference(f"the reference {_shown(reference)} leads out of the schema", place)
        if not _PLAIN_REFERENCE.fullmatch(reference):
            self.needs_compiler = True
        try:
            return lookup(self._root, reference)
        except LookupError:
            raise _bad_reference(f"the reference {_shown(reference)} leads to nothing", place) from None


def in_place(schema: dict[str, Any], targets: Mapping[int, Any], *, negated: bool) -> Iterator[dict[str, Any]]:
    """The object schemas that speak about the same value as `schema`, those below `not` only if `negated`."""
    for keyword, held in schema.items():
        if keyword in _BRANCHES or keyword in _CONDITIONS:
            if negated or keyword != "not":
                yield from (sub for _, sub in _held(held, _SHAPES[keyword]) if type(sub) is dict)
        elif keyword == "$ref":
            target = targets[id(schema)]
            if type(target) is dict:
                yield target


def evaluations(root: dict[str, Any], value: object) -> Iterator[int]:
    """A 1 for each time a schema of `root` may look at a part of `value`: the sum is what a full check costs."""
    left: list[tuple[Any, Any]] = [(root, value)]
    while left:
        schema, part = left.pop()
        yield 1
        if type(schema) is not dict:
            continue
        parts = part.values() if type(part) is dict else part if type(part) is list else ()
        for keyword, held in schema.items():
            if keyword in _BRANCHES or keyword in _CONDITIONS:
                left.extend((sub, part) for _, sub in _held(held, _SHAPES[keyword]))
            elif keyword == "$ref":
                left.append((lookup(root, held), part))
            elif keyword == "properties" and type(part) is dict:
                left.extend((held[key], part[key]) for key in held.keys() & part.keys())
            elif keyword in _PARTS or keyword in _OVERLAPS:
                left.extend((sub, inner) for _, sub in _held(held, _SHAPES[keyword]) for inner in parts)


def lookup(root: Any, reference: str) -> Any:
    """Return what a reference of the form '#' or '#/…' leads to.

    Raises:
        LookupError: it leads to nothing.
    Source: RFC 6901, section 6.
    """
    target = root
    tokens = (unquote(reference) if "%" in reference else reference).split("/")
    for token in tokens[1:]:
        step = token.replace("~1", "/").replace("~0", "~") if "~" in token else token
        if type(target) is list and step.isdecimal():
            target = target[int(step)]
        elif type(target) is dict:
            target = target[step]
        else:
            raise LookupError(reference)
    return target


def _held(held: Any, shape: int) -> Iterable[tuple[Any, Any]]:
    if type(held) is dict:
        return held.items() if shape is _MAP else ((None, held),)
    return enumerate(held) if type(held) is list and shape is not _MAP else ()


def _check_chains(holders: Iterable[tuple[dict[str, Any], _Path]], targets: Mapping[int, Any]) -> None:
    """Refuse references that lead back to themselves, or too far, without descending into the value.

    The validator recurses along such a chain at each level of a value: 1,900 references end the process.
    """
    heights: dict[int, int] = {}
    for holder, path in holders:
        target = targets[id(holder)]
        if type(target) is not dict or _IN_PLACE.isdisjoint(target) or id(holder) in heights:
            continue
        above = {id(holder): (holder, in_place(holder, targets, negated=True))}
        while above:
            current, (schema, left) = next(reversed(above.items()))
            sub = next((sub for sub in left if id(sub) not in heights), None)
            if sub is None:
                del above[current]
                subs = in_place(schema, targets, negated=True)
                heights[current] = 1 + max((heights[id(sub)] for sub in subs), default=0)
                if heights[current] > MAX_DEPTH:
                    raise _bad_chain(holder, path, f"leads through more than {MAX_DEPTH} schemas to one value")
            elif id(sub) in above:
                raise _bad_chain(holder, path, "leads back to itself and consumes nothing")
            else:
                above[id(sub)] = (sub, in_place(sub, targets, negated=True))


def _bad_chain(holder: dict[str, Any], path: _Path, what: str) -> SchemaInvalidError:
    return _bad_reference(f"the reference {_shown(holder['$ref'])} {what}", (path, "$ref"))


def _has_structure(schema: Any) -> bool:
    return type(schema) is dict and not _KEYWORDS.isdisjoint(schema)


def _takes_no_object(branch: Any) -> bool:
    if branch is False:
        return True
    named = branch.get("type") if type(branch) is dict else None
    return named is not None and named != "object" and not (type(named) is list and "object" in named)


def _check_pattern(pattern: Any, path: _Path) -> None:
    if type(pattern) is str and len(pattern) > MAX_PATTERN:
        raise SchemaInvalidError(
            f"a pattern has {len(pattern)} characters, more than {MAX_PATTERN}",
            where=_pointer(path),
            mend="check long texts in the tool itself (Tool.validate)",
        )


def _too_big(what: str, path: _Path) -> SchemaInvalidError:
    return SchemaInvalidError(
        f"the schema {what}", where=_pointer(path), mend="take fewer or flatter arguments, or free-form objects"
    )


def _bad_reference(what: str, path: _Path) -> SchemaInvalidError:
    return SchemaInvalidError(
        what,
        where=_pointer(path),
        mend="put the shared part under '$defs' and refer to it as '#/$defs/Name'; nothing is ever fetched",
    )


def _pointer(path: _Path) -> str:
    steps: list[str] = []
    while path:
        path, step = path
        steps.append(str(step)[:_SHOWN].replace("~", "~0").replace("/", "~1"))
    return "".join("/" + step for step in reversed(steps))


def _shown(reference: Any) -> str:
    text = str(reference)
    return f"'{text}'" if len(text) <= _SHOWN else f"'{text[:_SHOWN]}…'"
