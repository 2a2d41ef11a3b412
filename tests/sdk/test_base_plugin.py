"""A plugin written as one class."""

from __future__ import annotations

import inspect
import logging
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel, SecretStr

from cyrene_sdk import (
    BasePlugin,
    ConfigError,
    DefinitionError,
    FunctionTool,
    HasConfigSchema,
    HostAPI,
    Plugin,
    PluginConfig,
    PluginMetadata,
    complex_tool,
    tool,
)

META = PluginMetadata(name="sample", version="1.0.0")


class Settings(BaseModel):
    """Where to look."""

    city: str
    days: int = 1


class SampleHost:
    """A host that has what these plugins ask for."""

    version = "0.1.0"
    logger = logging.getLogger("sample")


HOST = cast(HostAPI, SampleHost())


def _named(plugin: BasePlugin) -> dict[str, FunctionTool]:
    made: Any = plugin.tools()
    return {each.definition().name: each for each in made}


def test_a_class_with_metadata_alone_is_a_plugin() -> None:
    class Sample(BasePlugin):
        meta = META

    plugin = Sample()
    assert isinstance(plugin, Plugin)
    assert isinstance(plugin, HasConfigSchema)
    assert plugin.metadata() is META
    assert plugin.config_schema() == {}
    assert plugin.tools() == []
    assert plugin.init(PluginConfig({"a": 1})) is plugin.start(HOST) is plugin.health() is plugin.stop() is None
    assert plugin.settings == {"a": 1}
    assert plugin.host is HOST


def test_a_class_without_metadata_is_told_so_when_it_is_asked() -> None:
    class Sample(BasePlugin): ...

    with pytest.raises(DefinitionError) as refused:
        Sample().metadata()
    assert str(refused.value) == (
        "plugin class 'Sample' has no metadata\n"
        f"  where: {__name__}\n"
        '  mend:  give it `meta = PluginMetadata(name="…", version="1.0.0")`'
    )


def test_the_configuration_is_checked_and_becomes_the_settings() -> None:
    class Sample(BasePlugin):
        meta = META
        config = Settings
        settings: Settings

    plugin = Sample()
    plugin.init(PluginConfig({"city": "Paris"}))
    assert plugin.settings == Settings(city="Paris", days=1)


def test_a_configuration_that_was_checked_already_is_taken_as_it_is() -> None:
    class Sample(BasePlugin):
        meta = META
        config = Settings

    checked = Settings(city="Rome")
    plugin = Sample()
    plugin.init(PluginConfig({"city": "Rome"}, model=checked))
    assert plugin.settings is checked


def test_every_fault_of_a_configuration_is_told_without_its_values() -> None:
    class Login(BaseModel):
        password: SecretStr
        port: int

    class Sample(BasePlugin):
        meta = META
        config = Login

    with pytest.raises(ConfigError) as refused:
        Sample().init(PluginConfig({"port": "hunter2"}))
    assert refused.value.faults == (
        ("/password", "Field required"),
        ("/port", "Input should be a valid integer, unable to parse string as an integer"),
    )
    assert str(refused.value) == (
        "the configuration does not fit Login: /password: Field required; "
        "/port: Input should be a valid integer, unable to parse string as an integer\n"
        "  mend:  correct the `config` of the plugin's entry"
    )
    assert refused.value.__cause__ is None


def test_the_configuration_schema_is_the_models() -> None:
    class Sample(BasePlugin):
        meta = META
        config = Settings

    assert Sample().config_schema() == {
        "type": "object",
        "description": "Where to look.",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 1}},
        "required": ["city"],
    }


async def test_settings_and_host_are_there_without_super_in_plain_and_async_methods() -> None:
    class Plain(BasePlugin):
        meta = META
        config = Settings

        def init(self, config: PluginConfig) -> None:
            self.seen = [self.settings.city, config.name]

        async def start(self, host: HostAPI) -> None:
            self.seen.append(self.host.version)

    class Swapped(BasePlugin):
        meta = META
        config = Settings

        async def init(self, config: PluginConfig) -> None:
            self.seen = [self.settings.city, config.name]

        def start(self, host: HostAPI) -> None:
            self.seen.append(self.host.version)

    config = PluginConfig({"city": "Paris"}, name="entry")
    plain, swapped = Plain(), Swapped()
    assert [inspect.iscoroutinefunction(method) for method in (plain.init, plain.start)] == [False, True]
    assert [inspect.iscoroutinefunction(method) for method in (swapped.init, swapped.start)] == [True, False]
    plain.init(config)
    await plain.start(host=HOST)
    await swapped.init(config)
    swapped.start(HOST)
    assert plain.seen == swapped.seen == ["Paris", "entry", "0.1.0"]


def test_methods_of_a_class_beside_base_plugin_are_no_exception() -> None:
    class Mixed:
        started_with: Any = None

        def start(self, host: HostAPI) -> None:
            self.started_with = host

    class Sample(Mixed, BasePlugin):
        meta = META

    class Deeper(Sample): ...

    plugin = Deeper()
    plugin.start(HOST)
    assert plugin.host is plugin.started_with is HOST


@pytest.mark.parametrize(("name", "stage"), [("settings", "init"), ("host", "start")])
def test_what_comes_later_is_told_so_when_it_is_used_before(name: str, stage: str) -> None:
    class Sample(BasePlugin):
        meta = META

    with pytest.raises(AttributeError) as refused:
        getattr(Sample(), name)
    assert str(refused.value) == f"'Sample' has no attribute '{name}'; it is there from {stage}() on"
    with pytest.raises(AttributeError, match=r"^'Sample' has no attribute 'hots'$"):
        _ = Sample().hots  # type: ignore[attr-defined]


def test_tools_come_in_the_order_of_definition_inherited_ones_first() -> None:
    class Parent(BasePlugin):
        meta = META

        @tool
        def zebra(self) -> str:
            return "parent"

        @tool(name="cow", serial=True)
        def cattle(self) -> str:
            return "parent"

    class Child(Parent):
        @complex_tool
        def ant(self) -> str:
            return "child"

        @tool(description="overridden")
        def zebra(self) -> str:
            return "child"

    assert list(_named(Parent())) == ["zebra", "cow"]
    assert list(_named(Child())) == ["zebra", "cow", "ant"]
    assert _named(Child())["zebra"].definition().description == "overridden"
    assert _named(Child())["zebra"].execute({}) == "child"
    assert _named(Parent())["zebra"].execute({}) == "parent"


def test_a_method_overridden_without_a_decorator_stays_the_tool_that_it_was() -> None:
    class Parent(BasePlugin):
        meta = META

        @tool(serial=True)
        def greet(self, name: str) -> str:
            return f"hello {name}"

    class Child(Parent):
        def greet(self, name: str) -> str:
            return super().greet(name).upper()

    greet = _named(Child())["greet"]
    assert greet.definition().serial
    assert greet.execute({"name": "Ada"}) == "HELLO ADA"


def test_a_tool_overridden_by_none_is_no_tool() -> None:
    class Parent(BasePlugin):
        meta = META

        @tool
        def greet(self, name: str) -> str:
            return name

    class Child(Parent):
        greet = None  # type: ignore[assignment]

    assert _named(Child()) == {}


def test_two_plugins_of_one_class_do_not_share_their_tools() -> None:
    class Sample(BasePlugin):
        meta = META

        def __init__(self, word: str) -> None:
            self.word = word

        @tool
        def say(self) -> str:
            return self.word

    assert [_named(Sample(word))["say"].execute({}) for word in ("one", "two")] == ["one", "two"]


def test_a_tool_may_take_what_the_plugin_was_given() -> None:
    class Sample(BasePlugin):
        meta = META

        @tool
        def tell(self, name: str, host: HostAPI, config: PluginConfig, log: logging.Logger) -> list[Any]:
            return [name, host, config, log]

    plugin = Sample()
    tell = _named(plugin)["tell"]
    config = PluginConfig({"a": 1})
    plugin.init(config)
    plugin.start(HOST)
    assert tell.execute({"name": "Ada"}) == ["Ada", HOST, config, SampleHost.logger]


def test_two_tools_of_one_name_are_refused_while_the_class_is_made() -> None:
    with pytest.raises(DefinitionError) as refused:

        class Sample(BasePlugin):
            meta = META

            @tool
            def hello(self) -> str:
                return ""

            @tool(name="hello")
            def greet(self) -> str:
                return ""

    line = refused.value.where.rpartition(":")[2] if refused.value.where else ""
    assert 'name="hello"' in Path(__file__).read_text(encoding="utf-8").splitlines()[int(line) - 1]
    assert str(refused.value) == (
        "plugin class 'Sample' has two tools named 'hello': methods 'hello' and 'greet'\n"
        f"  where: Sample.greet, {__file__}:{line}\n"
        '  mend:  give one of them another name: `@tool(name="…")`'
    )


@pytest.mark.parametrize("kind", [staticmethod, classmethod])
def test_a_tool_that_is_no_plain_method_is_refused_while_the_class_is_made(kind: Any) -> None:
    with pytest.raises(DefinitionError) as refused:

        class Sample(BasePlugin):
            @kind
            @tool
            def hello(self) -> str:
                return ""

    assert refused.value.what == f"tool 'hello' is a {kind.__name__}"
    assert refused.value.mend == "make it a plain method with `self`"


def test_a_name_that_nothing_defines_is_told_when_the_tools_are_asked_for() -> None:
    class Sample(BasePlugin):
        meta = META

        @tool
        def hello(self, part: Missing) -> str:  # type: ignore[name-defined]  # noqa: F821 - the point
            return ""

    with pytest.raises(DefinitionError) as refused:
        Sample().tools()
    assert refused.value.what == "an annotation of tool function 'hello' names 'Missing', which is not defined"


def test_a_configuration_is_read_only_and_shows_no_values() -> None:
    config = PluginConfig({"key": "hunter2", "city": "Paris"}, name="entry", version="1.0.0")
    assert (dict(config), len(config), config.name, config.version) == (
        {"key": "hunter2", "city": "Paris"},
        2,
        "entry",
        "1.0.0",
    )
    assert repr(config) == "PluginConfig(key, city)"
    assert config.folder == Path.cwd()
    assert PluginConfig(folder=Path("/etc/cyrene")).folder == Path("/etc/cyrene")
    with pytest.raises(TypeError):
        config["key"] = "x"  # type: ignore[index]
