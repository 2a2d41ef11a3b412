"""Plugins as data: the manifest a package ships, the one kept of an earlier look, and what differs between two."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json, to_json

from cyrene_host.catalog.fingerprints import source_key
from cyrene_host.catalog.sources import Source
from cyrene_host.catalog.unread import Unread, UnreadTools
from cyrene_host.catalog.whole_file import replace_whole
from cyrene_sdk._worker.contract import CONTRACT
from cyrene_sdk._worker.gate import GateError, checked
from cyrene_sdk._worker.manifest_file import MANIFEST, MANIFEST_FILE, document, manifest_path, manifest_text
from cyrene_sdk.errors import CyreneError
from cyrene_sdk.types import PluginMetadata, ToolDefinition, Wire

if TYPE_CHECKING:
    from cyrene_host.catalog.vouched import Vouched

__all__ = [
    "CONTRACTS",
    "SPOKEN",
    "Manifest",
    "ManifestError",
    "ManifestStore",
    "Origin",
    "differences",
    "drift",
    "parse_manifest",
    "read_shipped",
    "write_manifest",
]

CONTRACTS = range(1, CONTRACT + 1)
SPOKEN = f"{CONTRACTS[0]} to {CONTRACTS[-1]}" if len(CONTRACTS) > 1 else str(CONTRACTS[0])
"""The SDK contracts that this host speaks."""

MAX_BYTES = 4 * 1024 * 1024
_MAX_FAULTS = 5
_MAX_NAME_CHARS = 150

Origin = Literal["shipped", "kept", "live"]


class ManifestError(CyreneError):
    """A manifest cannot be read, or was made for another host."""


class Manifest(BaseModel):
    """A plugin as data.

    `tool_faults` has a sentence for each tool whose definition cannot be used; `attribute` is the class or factory
    that was described; `notes` say what was left out while reading; `digest` is that of its text, where checked texts
    are remembered. If this one was, its tools are read when they are needed.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    sdk_contract: int
    python: str = ""
    attribute: str | None = None
    metadata: PluginMetadata
    tools: Annotated[Sequence[ToolDefinition], AfterValidator(tuple)]
    tool_faults: dict[str, str] = Field(default_factory=dict)
    config_schema: dict[str, Any] | None = None
    origin: Origin = "live"
    notes: tuple[str, ...] = ()
    digest: str = ""

    @property
    def listed(self) -> Sequence[ToolDefinition | Unread]:
        """The tools, those that are not read yet left so: enough for their names."""
        return self.tools.unread if isinstance(self.tools, UnreadTools) else self.tools

    @property
    def is_vouched(self) -> bool:
        """Whether its text, with the schemas of all tools, was found good before."""
        return isinstance(self.tools, UnreadTools)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of `cyrene-plugin.json`."""
        described = {
            "sdk_contract": self.sdk_contract,
            "metadata": self.metadata.to_dict(),
            "tools": [tool.to_dict() for tool in self.tools],
            "tool_faults": self.tool_faults,
            "config_schema": self.config_schema,
        }
        return document(described, self.attribute)


class ManifestStore:
    """The manifests of a host's plugins: shipped in their packages, or kept in the state directory.

    Args:
        state_dir: the host's state directory; the folder `manifests` in it is made when needed.
        vouched: the texts that need no check; None checks all.

    `notes` collects one sentence for each kept file that could not be read or written.
    """

    def __init__(self, state_dir: Path, vouched: Vouched | None = None) -> None:
        self.notes: list[str] = []
        self._vouched = vouched
        self._folder = state_dir / "manifests"

    def find(self, source: Source, name: str) -> Manifest | None:
        """Return what is known of a plugin without running it; None where it must be described first.

        A kept manifest that fits the plugin's files goes before a shipped one: it is kept only where none was
        shipped or the live definitions differed.

        Args:
            name: the name of the plugin's entry.
        Raises:
            ManifestError: the shipped manifest is broken, or made for another host.
        """
        return self._kept(source, name) or read_shipped(source, plugin=name, vouched=self._vouched)

    def keep(self, source: Source, name: str, live: Manifest) -> list[str]:
        """Keep what a plugin said of itself, where that is not known already.

        Returns:
            One sentence for each difference from what was known; empty where nothing was.
        """
        known = self.find(source, name)
        changes = differences(known, live) if known is not None else []
        key = source_key(source)
        if key is not None and (known is None or changes):
            text = manifest_text({"key": key, "manifest": live.to_dict()})
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                replace_whole(self._file(name), text)
            except OSError as error:
                self.notes.append(f"the manifest of '{name}' was not kept: {error}")
        return changes

    def vouch(self, manifests: Iterable[Manifest]) -> None:
        """Remember the texts of manifests that were found good, with the schemas of all their tools."""
        if self._vouched is not None:
            self._vouched.add(manifest.digest for manifest in manifests if manifest.digest and not manifest.notes)

    def _kept(self, source: Source, name: str) -> Manifest | None:
        file = self._file(name)
        try:
            text = _read(file, self._vouched)
            if text is None or text.value["key"] != source_key(source):
                return None
            return _validated(text.value["manifest"], "kept", str(file), name, text)
        except (OSError, ValueError, TypeError, LookupError, ManifestError) as error:
            self.notes.append(f"'{file}' was left aside: {error}")
            return None

    def _file(self, name: str) -> Path:
        safe = quote(name, safe="")
        if len(safe) > _MAX_NAME_CHARS:
            safe = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
        return self._folder / f"{safe}.json"


def read_shipped(source: Source, *, plugin: str | None = None, vouched: Vouched | None = None) -> Manifest | None:
    """Read the manifest in a plugin's package.

    Returns:
        None where there is none, or where it describes another class of the same package.
    Raises:
        ManifestError: it cannot be read, is no manifest, or was made for another host.
    """
    if source.location is None:
        return None
    file = manifest_path(source.location)
    try:
        text = _read(file, vouched)
    except (OSError, ValueError) as error:
        raise _error(f"its {MANIFEST_FILE} cannot be read: {error}", str(file), plugin) from error
    if text is None:
        return None
    manifest = _validated(text.value, "shipped", str(file), plugin, text)
    is_of_another_class = None not in (manifest.attribute, source.attribute) and manifest.attribute != source.attribute
    return None if is_of_another_class else manifest


def parse_manifest(described: object, *, origin: Origin, where: str, plugin: str | None = None) -> Manifest:
    """Check what a plugin was described as.

    Raises:
        ManifestError: a wrong type, a value that is no JSON, a format or SDK contract that this host does not speak.
    """
    try:
        gated = checked(described, max_bytes=MAX_BYTES)
    except GateError as error:
        raise _error(f"its manifest is refused: {error}", where, plugin) from error
    return _validated(gated, origin, where, plugin)


def differences(old: Manifest, new: Manifest) -> list[str]:
    """Return one sentence for each thing that a plugin says otherwise than before."""
    changes = [f"metadata: {keys} changed" for keys in _changed(old.metadata, new.metadata)]
    before, after = ({tool.name: tool for tool in manifest.tools} for manifest in (old, new))
    changes += [f"tool '{name}' is gone" for name in before if name not in after]
    for name, tool in after.items():
        if name not in before:
            changes.append(f"tool '{name}' is new")
        else:
            changes += [f"tool '{name}': {keys} changed" for keys in _changed(before[name], tool)]
    if old.config_schema != new.config_schema:
        changes.append("the schema of 'config' changed")
    if old.tool_faults != new.tool_faults:
        changes.append("the faults of its tools changed")
    if old.sdk_contract != new.sdk_contract:
        changes.append(f"the SDK contract changed from {old.sdk_contract} to {new.sdk_contract}")
    return changes


def drift(source: Source, live: Manifest) -> list[str]:
    """Return one sentence for each difference of the shipped manifest from the live one; empty: it is up to date."""
    try:
        shipped = read_shipped(source)
    except ManifestError as error:
        return [error.what]
    return [f"there is no {MANIFEST_FILE}"] if shipped is None else differences(shipped, live)


def write_manifest(source: Source, live: Manifest) -> list[str]:
    """Write `cyrene-plugin.json` into a plugin's package, unless the one that is there says the same.

    Returns:
        What `drift` said before.
    Raises:
        ManifestError: a tool is faulty, the package is not known, or its folder cannot be written.
    """
    if live.tool_faults:
        raise _error("; ".join(live.tool_faults.values()), source.where, live.metadata.name)
    if source.location is None:
        raise _error(f"the package of '{source.module}' is not known", source.where, live.metadata.name)
    changes = drift(source, live)
    file = manifest_path(source.location)
    if changes:
        described = live.model_copy(update={"attribute": source.attribute})
        try:
            replace_whole(file, manifest_text(described.to_dict()))
        except OSError as error:
            raise _error(f"its {MANIFEST_FILE} cannot be written: {error}", str(file), live.metadata.name) from error
    return changes


@dataclass(frozen=True, slots=True)
class _Text:
    """A file's JSON value; the digest of its bytes, where texts are vouched for, and whether this one is."""

    value: Any
    digest: str = ""
    is_vouched: bool = False


def _validated(written: object, origin: Origin, where: str, plugin: str | None, text: _Text | None = None) -> Manifest:
    if not isinstance(written, dict):
        raise _error("its manifest is no JSON object", where, plugin)
    _check_numbers(written, where, plugin)
    fields = {**written, "origin": origin, "notes": (), "digest": text.digest if text else ""}
    if text and text.is_vouched:
        unread = UnreadTools(written["tools"])
        return Manifest.model_validate({**fields, "tools": ()}).model_copy(update={"tools": unread})
    with suppress(ValidationError):
        return Manifest.model_validate(fields)
    # Keys of a newer SDK are left out and noted; to look for them in every manifest would double the time.
    notes: list[str] = []
    try:
        return Manifest.model_validate(fields, context=notes).model_copy(update={"notes": tuple(notes)})
    except ValidationError as error:
        raise _error(f"its manifest is not valid: {_told(error)}", where, plugin) from error


def _check_numbers(written: Mapping[str, Any], where: str, plugin: str | None) -> None:
    number, contract = written.get("manifest", MANIFEST), written.get("sdk_contract")
    if number != MANIFEST:
        what = f"its manifest has the format '{number!s:.80}', this host reads {MANIFEST}"
        raise _error(what, where, plugin, mend="upgrade cyrene-host")
    if type(contract) is not int or contract not in CONTRACTS:
        newer = type(contract) is int and contract > CONTRACTS[-1]
        what = f"it was built with the SDK contract '{contract!s:.80}', this host speaks {SPOKEN}"
        mend = "upgrade cyrene-host" if newer else "upgrade the plugin: it must be built again with a newer cyrene-sdk"
        raise _error(what, where, plugin, mend=mend)


def _changed(old: Wire, new: Wire) -> list[str]:
    """Return the keys whose values differ, as one phrase; empty where none does."""
    before, after = old.to_dict(), new.to_dict()
    keys = [key for key in before | after if before.get(key) != after.get(key)]
    return [", ".join(keys)] if keys else []


def _told(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    told = [f"/{'/'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults[:_MAX_FAULTS]]
    return "; ".join(told)


def _read(file: Path, vouched: Vouched | None) -> _Text | None:
    """Return what is in a file; None where there is no file.

    The parser refuses what the gate would, seven times faster, but for infinities.

    Raises:
        OSError, ValueError: it cannot be read, is too large, or is no strict JSON.
    """
    try:
        status = file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
        raise ValueError(f"it is no file, or larger than {MAX_BYTES} bytes")
    text = file.read_bytes()
    value = from_json(text, allow_inf_nan=False)
    digest = hashlib.sha256(text).hexdigest() if vouched is not None else ""
    if vouched is not None and digest in vouched:
        return _Text(value, digest, is_vouched=True)
    may_hold_infinity = b"Infinity" in to_json(value, inf_nan_mode="constants")  # it reads 1e400 as one
    return _Text(checked(value, max_bytes=MAX_BYTES) if may_hold_infinity else value, digest)


def _error(what: str, where: str, plugin: str | None, mend: str | None = None) -> ManifestError:
    return ManifestError(what, plugin=plugin, where=where, mend=mend or "write it again: `cyrene manifest build`")
