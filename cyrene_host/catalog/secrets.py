"""Takes secrets from environment and files into a configuration, and out of every text that leaves the host."""

from __future__ import annotations

import base64
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias
from urllib.parse import quote, quote_plus

from pydantic import PlainValidator

from cyrene_host.catalog.faults import FaultsError
from cyrene_host.catalog.tables import Problem, refusal
from cyrene_sdk.errors import CyreneError

__all__ = ["RedactingFilter", "Redactor", "SecretError", "SecretText", "reference_problems", "resolve"]

MAX_SECRET_BYTES = 65_536
MIN_REDACTED = 8
_REFERENCES = ("$env", "$file")


def _secret_text(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if not _is_reference(value):
        raise refusal("the value must be a string or a reference to a secret", 'write "…" or {"$env": "NAME"}')
    for problem in reference_problems(value):
        raise refusal(problem.what, problem.mend)
    return value


SecretText: TypeAlias = Annotated[str | dict[str, str], PlainValidator(_secret_text)]


class SecretError(FaultsError):
    """References to secrets that cannot be followed, each naming plugin, pointer and mend."""


def reference_problems(value: Any, keys: tuple[str | int, ...] = ()) -> Iterator[Problem]:
    """Yield what is wrong with the form of the references inside a JSON value; nothing is looked up."""
    if _is_reference(value):
        if len(value) > 1:
            others = ", ".join(f"'{key}'" for key in value if key not in _REFERENCES) or "both '$env' and '$file'"
            yield Problem(keys, f"a reference to a secret has no other key, but this has {others}", "keep one key")
        elif not isinstance(name := next(iter(value.values())), str) or not name:
            key = next(iter(value))
            yield Problem((*keys, key), f"'{key}' must be a name, as a string that is not empty", "give the name")
        return
    for key, child in _children(value):
        yield from reference_problems(child, (*keys, key))


def resolve(
    value: Any, base: Path, env: Mapping[str, str], *, plugin: str | None = None, where: str = ""
) -> tuple[Any, frozenset[str]]:
    """Return a copy of a JSON value with its secrets in place, and the secrets.

    `{"$env": "NAME"}` is an environment variable. `{"$file": "path"}` is the text of a file, without its
    last line break; a relative path starts at `base`.

    Args:
        value: a JSON value.
        base: the folder of the configuration file.
        env: the environment.
        plugin, where: for the errors: whose value it is, and where (`plugins.json line 3, /plugins/0/config`).
    Raises:
        SecretError: with every reference that cannot be followed.
    """
    found: set[str] = set()
    faults: list[CyreneError] = []

    def followed(part: Any, keys: tuple[str | int, ...]) -> Any:
        if not _is_reference(part):
            if isinstance(part, dict):
                return {key: followed(child, (*keys, key)) for key, child in part.items()}
            return [followed(child, (*keys, at)) for at, child in enumerate(part)] if isinstance(part, list) else part
        problem = next(reference_problems(part, keys), None)
        secret = problem or _looked_up(part, base, env, keys)
        if isinstance(secret, Problem):
            faults.append(CyreneError(secret.what, plugin=plugin, where=where + secret.pointer, mend=secret.mend))
            return None
        found.add(secret)
        return secret

    resolved = followed(value, ())
    if faults:
        raise SecretError(faults)
    return resolved, frozenset(found)


class Redactor:
    """Replaces secrets by `***`: as they are, in JSON, URL-encoded, and inside base64.

    A secret below 8 characters is not replaced: it would be found in ordinary words.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        spellings = {spelling for secret in secrets if len(secret) >= MIN_REDACTED for spelling in _spellings(secret)}
        longest_first = sorted(spellings, key=lambda spelling: (-len(spelling), spelling))
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def redact(self, text: str) -> str:
        """Return the text without the secrets."""
        return self._pattern.sub("***", text) if self._pattern else text


def _is_reference(value: Any) -> bool:
    return isinstance(value, dict) and any(key in value for key in _REFERENCES)


def _children(value: Any) -> Iterable[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _looked_up(
    reference: Mapping[str, str], base: Path, env: Mapping[str, str], keys: tuple[str | int, ...]
) -> str | Problem:
    ((kind, name),) = reference.items()
    if kind == "$env":
        if name in env:
            return env[name]
        return Problem(keys, f"the environment variable '{name}' is not set", f"set it: export {name}=…")
    path = base / name
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SECRET_BYTES + 1)
        if len(content) > MAX_SECRET_BYTES:
            return Problem(
                keys, f"the secret file '{path}' is larger than {MAX_SECRET_BYTES:,} bytes", "correct the path"
            )
        text = content.decode()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        return Problem(keys, f"the secret file '{path}' cannot be read: {reason}", f"write the secret into '{path}'")
    return text.removesuffix("\n").removesuffix("\r")


def _spellings(secret: str) -> set[str]:
    raw = secret.encode(errors="surrogatepass")
    plain = base64.b64encode(raw).decode()
    spellings = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    spellings |= {quote(raw), quote(raw, safe=""), quote_plus(raw), plain, plain.rstrip("="), *_inside_base64(raw)}
    return spellings | {spelling.replace("+", "-").replace("/", "_") for spelling in _inside_base64(raw) | {plain}}


def _inside_base64(raw: bytes) -> set[str]:
    """The characters that stand for `raw` alone wherever it begins, as in the base64 of `user:password`."""
    coded = (base64.b64encode(bytes(shift) + raw).decode() for shift in range(3))
    return {text[-(-8 * shift // 6) : 8 * (shift + len(raw)) // 6] for shift, text in enumerate(coded)}


class RedactingFilter(logging.Filter):
    """Takes a plugin's secrets out of its log, before any handler sees them."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    @classmethod
    def put_on(cls, logger: logging.Logger, redactor: Redactor | None) -> None:
        """Let a logger have the filter for these secrets, and no other of this kind."""
        for before in [found for found in logger.filters if isinstance(found, cls)]:
            logger.removeFilter(before)
        if redactor is not None:
            logger.addFilter(cls(redactor))

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact a record's message and traceback, in place."""
        record.msg, record.args = self._redactor.redact(record.getMessage()), None
        if record.exc_info:
            record.exc_text = self._redactor.redact(logging.Formatter().formatException(record.exc_info))
        return True
