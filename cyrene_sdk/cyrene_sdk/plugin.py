"""`BasePlugin`: a plugin written as one class, whose decorated methods are its tools."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ValidationError

from cyrene_sdk.binding import faults_of
from cyrene_sdk.errors import CyreneError, DefinitionError
from cyrene_sdk.protocols import HostAPI, PluginConfig, Tool
from cyrene_sdk.signature import place_of, tidy
from cyrene_sdk.tools import Declaration, declaration_of
from cyrene_sdk.types import PluginMetadata

__all__ = ["BasePlugin", "ConfigError", "checked_config"]


class ConfigError(CyreneError):
    """The configuration of a plugin does not fit its model; `faults` are (JSON pointer, sentence), without values."""

    def __init__(self, what: str, *, faults: Sequence[tuple[str, str]], mend: str) -> None:
        super().__init__(what, mend=mend)
        self.faults = tuple(faults)


def checked_config(model: type[BaseModel], values: Mapping[str, Any]) -> BaseModel:
    """Return the configuration as an instance of the plugin's model.

    Raises:
        ConfigError: with every fault at once.
    """
    given = dict(values)
    try:
        return model.model_validate(given)
    except ValidationError as error:
        faults = faults_of(error, given)
        shown = "; ".join(f"{pointer or '/'}: {text}" for pointer, text in faults)
        # Not `from error`: pydantic's text shows the values, which may be secrets.
        raise ConfigError(
            f"the configuration does not fit {model.__name__}: {shown}",
            faults=faults,
            mend="correct the `config` of the plugin's entry",
        ) from None


class BasePlugin:
    """A plugin whose tools are its methods decorated with `tool` or `complex_tool`.

    A subclass gives `meta`, and `config` where it takes settings. Every method may be overridden, as `def`
    or `async def`, without calling `super()`: `settings` and `host` are there all the same.

    `settings` (from `init` on) is the checked instance of `config`, or the PluginConfig where no model is
    declared; annotate it in the subclass to have its type. `host` (from `start` on) is the HostAPI.
    """

    meta: ClassVar[PluginMetadata]
    config: ClassVar[type[BaseModel] | None] = None
    settings: Any
    host: HostAPI

    _declarations: ClassVar[Mapping[str, Declaration]] = {}
    _entry_config: PluginConfig

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._declarations = _declarations(cls)
        for name, keep in (("init", BasePlugin._keep_config), ("start", BasePlugin._keep_host)):
            owner = next(kind for kind in cls.__mro__ if name in vars(kind))
            if owner is cls or not issubclass(owner, BasePlugin):
                setattr(cls, name, _after_keeping(getattr(cls, name), keep))

    if not TYPE_CHECKING:  # checkers would take any attribute for known

        def __getattr__(self, name: str) -> Any:
            stage = {"settings": "init", "_entry_config": "init", "host": "start"}.get(name)
            hint = f"; it is there from {stage}() on" if stage else ""
            raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'{hint}", name=name, obj=self)

    def metadata(self) -> PluginMetadata | Awaitable[PluginMetadata]:
        """Return `meta`.

        Raises:
            DefinitionError: the class has none.
        """
        meta: PluginMetadata | None = getattr(type(self), "meta", None)
        if meta is None:
            raise DefinitionError(
                f"plugin class '{type(self).__name__}' has no metadata",
                where=type(self).__module__,
                mend='give it `meta = PluginMetadata(name="…", version="1.0.0")`',
            )
        return meta

    def init(self, config: PluginConfig) -> None | Awaitable[None]:
        """Take the configuration.

        Raises:
            ConfigError: it does not fit the `config` model.
        """
        self._keep_config(config)
        return None

    def start(self, host: HostAPI) -> None | Awaitable[None]:
        """Begin work; `host` is there from now on."""
        self._keep_host(host)
        return None

    def stop(self) -> None | Awaitable[None]:
        """Release everything; nothing by default."""
        return None

    def health(self) -> None | Awaitable[None]:
        """Return when well, raise when not; well by default."""
        return None

    def tools(self) -> Sequence[Tool] | Awaitable[Sequence[Tool]]:
        """Return a tool for each decorated method, in the order of definition, inherited ones first.

        A method overridden without a decorator stays the tool that it was; overridden by None it is none.

        Raises:
            DefinitionError: an annotation names something that is not defined.
        """
        sources: dict[type, Callable[[], Any]] = {
            HostAPI: lambda: self.host,
            logging.Logger: lambda: self.host.logger,
            PluginConfig: lambda: self._entry_config,
        }
        return [declared.made(getattr(self, name), sources) for name, declared in self._declarations.items()]

    def config_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the `config` model; empty where there is none."""
        model = type(self).config
        schema: dict[str, Any] = tidy(model.model_json_schema()) if model else {}
        return schema

    def _keep_config(self, config: PluginConfig) -> None:
        model = type(self).config
        self._entry_config = config
        if config.model is not None:
            self.settings = config.model
        else:
            self.settings = checked_config(model, config) if model else config

    def _keep_host(self, host: HostAPI) -> None:
        self.host = host


def _after_keeping(method: Callable[..., Any], keep: Callable[[Any, Any], None]) -> Callable[..., Any]:
    """Return `method` so that the plugin keeps what it is given first, whether or not it calls `super()`."""
    if inspect.iscoroutinefunction(method):

        @wraps(method)
        async def keep_and_await(self: BasePlugin, *args: Any, **kwargs: Any) -> Any:
            keep(self, *args, *kwargs.values())
            return await method(self, *args, **kwargs)

        return keep_and_await

    @wraps(method)
    def keep_and_call(self: BasePlugin, *args: Any, **kwargs: Any) -> Any:
        keep(self, *args, *kwargs.values())
        return method(self, *args, **kwargs)

    return keep_and_call


def _declarations(plugin: type[BasePlugin]) -> dict[str, Declaration]:
    """Collect the decorated methods by attribute name.

    Raises:
        DefinitionError: two of them have one tool name, or one is a static or class method.
    """
    found: dict[str, Declaration] = {}
    for kind in reversed(plugin.__mro__):
        for name, attribute in vars(kind).items():
            if declared := declaration_of(getattr(attribute, "__func__", attribute)):
                found[name] = declared
                if not inspect.isfunction(attribute):
                    raise DefinitionError(
                        f"tool '{declared.name}' is a {type(attribute).__name__}",
                        where=place_of(declared.function),
                        mend="make it a plain method with `self`",
                    )
            elif attribute is None:
                found.pop(name, None)
    _refuse_duplicates(plugin, found)
    return found


def _refuse_duplicates(plugin: type[BasePlugin], found: Mapping[str, Declaration]) -> None:
    owners: dict[str, str] = {}
    for name, declared in found.items():
        if declared.name in owners:
            raise DefinitionError(
                f"plugin class '{plugin.__name__}' has two tools named '{declared.name}': "
                f"methods '{owners[declared.name]}' and '{name}'",
                where=place_of(declared.function),
                mend='give one of them another name: `@tool(name="…")`',
            )
        owners[declared.name] = name
