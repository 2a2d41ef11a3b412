"""The host as a program embeds it: open, call, look, register, close."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cyrene_host import Host, HostStateError
from cyrene_host.catalog.plugins_file import PluginsFileError
from cyrene_host.supervise.supervisor import StartAbortedError
from cyrene_sdk import DefinitionError

Write = Callable[..., Path]

LIVES = """
    from pathlib import Path

    from cyrene_sdk import BasePlugin, PluginMetadata, tool

    LOG = Path(__file__).parent.parent / "log"


    def note(text):
        with LOG.open("a") as log:
            log.write(text + "\\n")


    class Plugin(BasePlugin):
        meta = PluginMetadata(name="NAME", version="1.0.0", dependencies=NEEDS)

        async def init(self, config):
            note("NAME init")
            INIT

        def start(self, host):
            note("NAME start")
            START

        async def stop(self):
            note("NAME stop")
            STOP

        async def health(self):
            HEALTH

        @tool
        async def NAME_do(self) -> str:
            '''Do it.'''
            return "done by NAME"
"""


def living(name: str, needs: dict[str, str] | None = None, **bodies: str) -> str:
    text = LIVES.replace("NAME", name).replace("NEEDS", repr(needs or {}))
    for stage in ("INIT", "START", "STOP", "HEALTH"):
        text = text.replace(stage, bodies.get(stage.lower(), "pass"))
    return text


def log_of(file: Path) -> list[str]:
    log = file.parent / "plugins" / "log"
    return log.read_text().splitlines() if log.exists() else []


async def test_plugins_start_after_what_they_need_and_stop_before_it(plugins_json: Write) -> None:
    file = plugins_json(
        [{"name": "upper"}, {"name": "lower"}], upper=living("upper", {"lower": "1.0"}), lower=living("lower")
    )

    async with Host.open(file) as host:
        assert [report.state for report in host.plugins.list()] == ["started", "started"]

    log = log_of(file)
    assert log == ["lower init", "lower start", "upper init", "upper start", "upper stop", "lower stop"]


async def test_a_call_starts_only_what_it_needs_when_plugins_start_when_called(plugins_json: Write) -> None:
    file = plugins_json(
        [{"name": "upper"}, {"name": "lower"}, {"name": "other"}],
        upper=living("upper", {"lower": "1.0"}),
        lower=living("lower"),
        other=living("other"),
    )

    async with Host.open(file, start="called") as host:
        assert log_of(file) == []
        results = await asyncio.gather(*(host.call("upper_do") for _ in range(5)))
        states = {report.name: report.state.value for report in host.plugins.list()}

    assert [result.output for result in results] == ["done by upper"] * 5
    assert states == {"upper": "started", "lower": "started", "other": "discovered"}
    assert log_of(file) == ["lower init", "lower start", "upper init", "upper start", "upper stop", "lower stop"]


async def test_a_lazy_plugin_is_started_by_its_first_call(plugins_json: Write) -> None:
    file = plugins_json([{"name": "lazy", "activation": "lazy"}], lazy=living("lazy"))

    async with Host.open(file) as host:
        assert log_of(file) == []
        assert host.plugins.get("lazy").state == "discovered"
        assert host.tools.get("lazy_do").is_offered
        result = await host.call("lazy_do")

    assert result.output == "done by lazy"


@pytest.mark.parametrize(
    ("bodies", "stage", "log"),
    [
        ({"init": "raise RuntimeError('no init')"}, "init", ["bad init"]),
        ({"start": "raise SystemExit(4)"}, "start", ["bad init", "bad start", "bad stop"]),
    ],
)
async def test_stop_is_called_only_on_a_plugin_whose_init_ended(
    plugins_json: Write, bodies: dict[str, str], stage: str, log: list[str]
) -> None:
    file = plugins_json([{"name": "bad"}, {"name": "good"}], bad=living("bad", **bodies), good=living("good"))

    async with Host.open(file) as host:
        report = host.plugins.get("bad")
        good = await host.call("good_do")
        bad = await host.call("bad_do")
        assert not host.tools.get("bad_do").is_offered

    assert (report.state, report.stage) == ("failed", stage)
    assert report.error is not None
    assert report.error.where is not None
    assert report.error.where.startswith(f"stage {stage} of 'bad' 1.0.0, plugins.json line 1, /0")
    assert good.success
    assert bad.error_kind == "plugin_unavailable"
    assert "it has failed" in bad.error
    assert [line for line in log_of(file) if line.startswith("bad")] == log


async def test_a_stage_that_takes_too_long_fails_and_names_its_limit(plugins_json: Write) -> None:
    source = living("slow", init="await __import__('asyncio').Event().wait()")
    file = plugins_json([{"name": "slow", "limits": {"init_s": 0.05, "kill_grace_s": 0.05}}], slow=source)

    async with Host.open(file) as host:
        report = host.plugins.get("slow")

    assert report.state == "failed"
    assert report.error is not None
    assert report.error.what == "'init' did not end within its limit of 0.05 s"
    assert report.error.mend == "find what it waits for, or raise limits.init_s in the entry"


async def test_a_plugin_that_needs_a_failed_one_is_incompatible_with_the_cause(plugins_json: Write) -> None:
    file = plugins_json(
        [{"name": "upper"}, {"name": "lower"}],
        upper=living("upper", {"lower": "1.0"}),
        lower=living("lower", start="raise OSError('port taken')"),
    )

    async with Host.open(file) as host:
        report = host.plugins.get("upper")

    assert report.state == "incompatible"
    assert report.error is not None
    assert "it needs the plugin 'lower', which is failed: 'start' raised OSError: port taken" in report.error.what
    assert report.error.mend == "mend 'lower' first"


async def test_a_plugin_that_must_not_fail_ends_the_start(plugins_json: Write) -> None:
    file = plugins_json(
        [{"name": "vital", "on_failure": "abort"}, {"name": "other"}],
        vital=living("vital", start="raise OSError('no disk')"),
        other=living("other"),
    )

    with pytest.raises(StartAbortedError) as raised:
        async with Host.open(file):
            pytest.fail("the host must not open")

    assert raised.value.plugin == "vital"
    assert "no disk" in raised.value.what
    assert "other stop" in log_of(file)


async def test_a_stop_that_raises_leaves_the_others_stopped(
    plugins_json: Write, caplog: pytest.LogCaptureFixture
) -> None:
    file = plugins_json(
        [{"name": "one"}, {"name": "two"}, {"name": "three"}],
        one=living("one"),
        two=living("two", {"one": "1"}, stop="raise ValueError('stuck')"),
        three=living("three", {"two": "1"}),
    )

    async with Host.open(file) as host:
        pass

    assert log_of(file)[-3:] == ["three stop", "two stop", "one stop"]
    states = {report.name: report.state.value for report in host.plugins.list()}
    assert states == {"one": "stopped", "two": "stopping", "three": "stopped"}
    assert "plugin 'two': 'stop' raised ValueError: stuck" in caplog.text


async def test_a_plugin_is_degraded_while_a_given_up_call_of_it_runs(plugins_json: Write) -> None:
    stuck = living("stuck").replace("LOG =", "import threading\n    END = threading.Event()\n    LOG =", 1)
    stuck = stuck.replace("async def stuck_do", "def stuck_do").replace('return "done', 'END.wait(10); return "done')

    async with Host.open(plugins_json([{"name": "stuck", "runtime": "inline"}], stuck=stuck)) as host:
        result = await host.call("stuck.stuck_do", deadline_s=0.05)
        [during] = await host.health()
        still_called = await host.call("stuck.stuck_do", {"no": 1})
        sys.modules["stuck"].END.set()
        async with asyncio.timeout(10):
            while (after := (await host.health())[0]).state == "degraded":
                pass

    assert result.error_kind == "timeout"
    assert (during.state, during.is_well, during.abandoned) == ("degraded", False, 1)
    assert during.error
    assert during.error.what == "calls that were given up still run inside the host: 1"
    assert still_called.error_kind == "invalid_arguments"
    assert (after.state, after.error) == ("started", None)


async def test_health_tells_a_degraded_plugin_and_its_recovery(plugins_json: Write) -> None:
    health = "\n            if (LOG.parent / 'sick').exists():\n                raise OSError('no answer')"
    file = plugins_json([{"name": "frail"}], frail=living("frail", health=health))
    sick = file.parent / "plugins" / "sick"

    async with Host.open(file) as host:
        (well,) = await host.health()
        sick.touch()
        (ill,) = await host.health()
        result = await host.call("frail_do")
        sick.unlink()
        (again,) = await host.health()

    assert well.is_well
    assert (ill.state, ill.is_well) == ("degraded", False)
    assert ill.error is not None
    assert ill.error.what == "'health' raised OSError: no answer"
    assert ill.last_healthy == well.last_healthy
    assert result.success
    assert (again.state, again.is_well) == ("started", True)


async def test_the_config_reaches_the_plugin_with_its_secrets_and_they_are_redacted(
    plugins_json: Write, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    source = """
        from pydantic import BaseModel
        from cyrene_sdk import BasePlugin, PluginMetadata, tool

        class Settings(BaseModel):
            key: str
            city: str = "Hefei"

        class Keyed(BasePlugin):
            meta = PluginMetadata(name="keyed", version="1.0.0")
            config = Settings

            @tool
            async def tell(self, fail: bool = False) -> dict:
                '''Tell the key.'''
                if fail:
                    raise RuntimeError("refused key " + self.settings.key)
                return {"city": self.settings.city, "key": self.settings.key}
    """
    monkeypatch.setenv("KEYED_KEY", "canary-0123456789")
    file = plugins_json([{"name": "keyed", "config": {"key": {"$env": "KEYED_KEY"}}}], keyed=source)

    async with Host.open(file) as host:
        told = await host.call("tell")
        failed = await host.call("tell", {"fail": True})

    assert told.data == {"city": "Hefei", "key": "***"}
    assert failed.error_kind == "tool_error"
    for text in (told.to_json(), failed.to_json(), caplog.text):
        assert "canary" not in text


async def test_a_config_that_does_not_fit_points_into_plugins_json(plugins_json: Write) -> None:
    source = """
        from pydantic import BaseModel
        from cyrene_sdk import BasePlugin, PluginMetadata

        class Settings(BaseModel):
            port: int

        class Keyed(BasePlugin):
            meta = PluginMetadata(name="keyed", version="1.0.0")
            config = Settings
    """
    file = plugins_json([{"name": "keyed", "config": {"port": "many"}}], keyed=source)

    async with Host.open(file) as host:
        report = host.plugins.get("keyed")

    assert (report.state, report.stage) == ("failed", "init")
    assert report.error is not None
    assert "plugins.json line 1, /0/config/port" in (report.error.where or "")
    assert "many" not in str(report.error)


async def test_a_config_schema_of_a_plugin_without_a_model_is_checked_by_the_host(plugins_json: Write) -> None:
    source = living("plain").replace(
        "async def health",
        "def config_schema(self):\n            return {'required': ['port']}\n\n        async def health",
    )
    file = plugins_json([{"name": "plain"}], plain=source)

    async with Host.open(file) as host:
        report = host.plugins.get("plain")

    assert (report.state, report.stage) == ("failed", "init")
    assert report.error is not None
    assert "'port'" in report.error.what
    assert log_of(file) == []


async def test_a_secret_that_is_missing_blocks_the_plugin_and_no_other(plugins_json: Write) -> None:
    file = plugins_json(
        [{"name": "keyed", "config": {"key": {"$env": "NOWHERE_SET"}}}, {"name": "good"}],
        keyed=living("keyed"),
        good=living("good"),
    )

    async with Host.open(file) as host:
        report = host.plugins.get("keyed")
        good = await host.call("good_do")

    assert report.state == "blocked"
    assert report.error is not None
    assert "NOWHERE_SET" in report.error.what
    assert good.success


async def test_live_definitions_replace_the_manifest_with_a_note(plugins_json: Write) -> None:
    source = """
        from cyrene_sdk import BasePlugin, PluginMetadata, function_tool

        def early(text: str) -> str:
            '''Say a text.'''
            return text

        def late(text: str) -> str:
            '''Say a text.'''
            return "late " + text

        class Grows(BasePlugin):
            meta = PluginMetadata(name="grows", version="1.0.0")
            is_started = False

            def start(self, host):
                self.is_started = True

            def tools(self):
                return [function_tool(early), *([function_tool(late)] if self.is_started else [])]
    """
    file = plugins_json([{"name": "grows"}], grows=source)

    async with Host.open(file) as host:
        result = await host.call("late", {"text": "hi"})
        report = host.plugins.get("grows")
    async with Host.open(file) as host:
        again = host.plugins.get("grows")

    assert result.output == "late hi"
    assert any("tool 'late' is new" in note for note in report.notes)
    assert again.notes == ()


async def test_a_host_that_is_cancelled_while_it_opens_stops_what_it_began(plugins_json: Write, tmp_path: Path) -> None:
    cancel = "import asyncio; [t for t in asyncio.all_tasks() if t.get_name() == 'opener'][0].cancel()"
    slow = living("slow", {"quick": ""}, start=f"{cancel}; await asyncio.Event().wait()")
    slow = slow.replace("def start", "async def start")
    inline = {"runtime": "inline"}
    file = plugins_json([{"name": "slow", **inline}, {"name": "quick", **inline}], slow=slow, quick=living("quick"))

    tasks = asyncio.all_tasks()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(Host.open(file).__aenter__(), name="opener")

    log = (tmp_path / "plugins" / "log").read_text().splitlines()
    assert log == ["quick init", "quick start", "slow init", "slow start", "slow stop", "quick stop"]
    assert asyncio.all_tasks() == tasks


async def test_a_function_of_the_program_is_a_tool_like_any_other(plugins_json: Write) -> None:
    async def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    async with Host.open(plugins_json([])) as host:
        report = host.tools.register(double, danger_level="low")
        good = await host.call("double", {"number": "21"})
        by_id = await host.call("app.double", {"number": 1})
        bad = await host.call("double", {"number": "many"})
        host.tools.register(lambda: None, name="nothing")
        why = host.tools.why("double")

    assert (report.id, report.name, report.danger) == ("app.double", "double", "low")
    assert (good.data, good.output, good.plugin) == (42, "42", "app")
    assert good.notes == ["/number: text '21' read as the integer 21"]
    assert by_id.data == 2
    assert bad.error_kind == "invalid_arguments"
    assert why.is_available


async def test_a_function_registered_later_is_the_one_that_is_called(plugins_json: Write) -> None:
    async with Host.open(plugins_json([])) as host:
        host.tools.register(lambda: "first", name="say", id="told")
        first = await host.call("say")
        report = host.tools.register(lambda: "second", name="say")
        second = await host.call("say")
        old_id = await host.call("told")
        listed = [tool.id for tool in host.tools.list()]

    assert (first.output, second.output) == ("first", "second")
    assert report.name == "say"
    assert old_id.error_kind == "unknown_tool"
    assert listed == ["app.say"]


async def test_a_function_that_takes_a_tool_s_short_name_makes_it_mean_two(plugins_json: Write) -> None:
    async with Host.open(plugins_json([{"name": "one"}], one=living("one"))) as host:
        before = await host.call("one_do")
        report = host.tools.register(lambda: "own", name="one_do")
        after = await host.call("one_do")
        by_id = await host.call("one.one_do")
        own = await host.call(report.name)

    assert before.success
    assert report.name == "app__one_do"
    assert "means several tools" in after.error
    assert by_id.success
    assert own.output == "own"


async def test_a_function_does_not_take_the_place_of_a_plugin_s_tool(plugins_json: Write) -> None:
    async with Host.open(plugins_json([{"name": "app", "trust": "full"}], app=living("app"))) as host:
        with pytest.raises(DefinitionError) as refused:
            host.tools.register(lambda: "own", name="app_do")
        result = await host.call("app.app_do")

    assert result.output == "done by app"
    assert str(refused.value) == (
        "the tool 'app.app_do' would be one of the plugin 'app'\n"
        "  where: plugins.json line 1, /0\n"
        "  mend:  give the plugin another name: 'app' stands before the program's own tools"
    )


async def test_an_untyped_function_is_refused_when_it_is_registered(plugins_json: Write) -> None:
    def untyped(number):  # type: ignore[no-untyped-def]
        """Double a number."""
        return 2 * number

    async with Host.open(plugins_json([])) as host:
        with pytest.raises(Exception, match="number") as raised:
            host.tools.register(untyped)
    assert type(raised.value).__name__ == "DefinitionError"


async def test_two_plugins_with_one_tool_name_are_called_by_id_or_qualified_name(plugins_json: Write) -> None:
    source = living("one").replace("one_do", "same")
    file = plugins_json(
        [{"name": "one"}, {"name": "two"}], one=source, two=source.replace("by one", "by two").replace('"one"', '"two"')
    )

    async with Host.open(file) as host:
        ambiguous = await host.call("same")
        by_id = await host.call("two.same")
        names = {report.id: report.name for report in host.tools.list()}
        offered = await host.call(names["one.same"])
        why = host.tools.why("same")

    assert ambiguous.error_kind == "unknown_tool"
    assert ambiguous.error.splitlines()[-1] == "  mend:  say which: 'one.same', 'two.same'"
    assert by_id.output == "done by two"
    assert names == {"one.same": "one__same", "two.same": "two__same"}
    assert offered.output == "done by one"
    assert (why.is_available, why.reason) == (False, "ambiguous_name")


async def test_a_tool_that_the_operator_switched_off_is_denied(plugins_json: Write) -> None:
    file = plugins_json([{"name": "one", "tools": {"one_do": {"enabled": False}}}], one=living("one"))

    async with Host.open(file) as host:
        result = await host.call("one_do")
        why = host.tools.why("one_do")
        report = host.tools.get("one_do")

    assert result.error_kind == "denied"
    assert why.reason == "tool_switched_off"
    assert not report.is_offered


@pytest.mark.parametrize(
    ("lists", "is_allowed"),
    [
        ({"tools.allow": ["one.*"]}, True),
        ({"tools.allow": ["two.*"]}, False),
        ({"tools.allow": []}, False),
        ({"tools.deny": ["*.one_do"]}, False),
        ({"tools.allow": ["one.one_do"], "tools.deny": ["one.*"]}, False),
    ],
)
async def test_only_what_the_operators_lists_allow_is_called(
    plugins_json: Write, lists: dict[str, list[str]], is_allowed: bool
) -> None:
    file = plugins_json([{"name": "one"}], one=living("one"))

    async with Host.open(file, overrides=lists) as host:
        result = await host.call("one_do")
        why = host.tools.why("one_do")
        report = host.tools.get("one_do")

    assert result.success == report.is_offered == why.is_available == is_allowed
    if not is_allowed:
        assert result.error_kind == "denied"
        assert "list of allowed tools leaves 'one.one_do' out" in result.error
        assert why.reason == "tool_not_allowed"


async def test_the_operator_raises_danger_but_lowers_it_only_with_full_trust(plugins_json: Write) -> None:
    dangerous = living("one").replace("@tool", '@tool(danger_level="high")')
    lowered: dict[str, Any] = {"one_do": {"danger_level": "low"}}
    levels = []
    for extra in ({}, {"tools": lowered}, {"tools": lowered, "trust": "full"}):
        file = plugins_json([{"name": "one", **extra}], one=dangerous)
        async with Host.open(file) as host:
            report = host.tools.get("one_do")
            levels.append((report.danger.value, report.decision))

    assert levels == [("high", "confirm"), ("high", "confirm"), ("low", "allow")]


async def test_an_enabled_hook_package_sees_calls_and_a_missing_one_is_named(
    plugins_json: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    (site / "watch-1.0.dist-info").mkdir(parents=True)
    (site / "watch-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: watch\nVersion: 1.0\n")
    (site / "watch-1.0.dist-info" / "entry_points.txt").write_text("[cyrene.hooks]\nwatch = watch_hooks\n")
    (site / "watch_hooks.py").write_text(
        "from cyrene_sdk.hooks import hookimpl\n"
        "seen = []\n"
        "@hookimpl\n"
        "def before_call(tool_id):\n    seen.append(tool_id)\n"
        "@hookimpl\n"
        "def plugin_state_changed(plugin, new):\n    seen.append(f'{plugin} {new}')\n"
    )
    monkeypatch.syspath_prepend(str(site))
    file = plugins_json([{"name": "one"}], one=living("one"))

    async with Host.open(file, overrides={"hooks.enabled": ["watch"]}) as host:
        await host.call("one_do")
    import watch_hooks  # type: ignore[import-not-found]  # written just above

    states = ["one starting", "one loaded", "one started", "one.one_do", "one stopping", "one stopped"]
    assert watch_hooks.seen == states
    with pytest.raises(HostStateError, match="no hook package 'wacth'"):
        async with Host.open(file, overrides={"hooks.enabled": ["wacth"]}):
            pytest.fail("the host must not open")


async def test_a_closed_host_says_how_to_open_it(plugins_json: Write) -> None:
    async with Host.open(plugins_json([])) as host:
        pass
    with pytest.raises(HostStateError, match="the host is not open"):
        await host.call("anything")


async def test_a_host_may_be_opened_and_closed_by_different_tasks(plugins_json: Write) -> None:
    opening = Host.open(plugins_json([{"name": "one"}], one=living("one")))
    host = await asyncio.create_task(opening.__aenter__())
    result = await host.call("one_do")
    await asyncio.create_task(opening.__aexit__(None, None, None))

    assert result.output == "done by one"
    assert host.plugins.get("one").state == "stopped"


@pytest.mark.parametrize("name", [None, 3, ["one_do"], {"a": 1}, ""])
async def test_a_name_that_is_no_text_is_an_unknown_tool(plugins_json: Write, name: Any) -> None:
    async with Host.open(plugins_json([])) as host:
        result = await host.call(name)

    assert result.error_kind == "unknown_tool"


async def test_an_error_in_the_body_comes_out_as_it_is(plugins_json: Write) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with Host.open(plugins_json([])):
            raise KeyError("mine")


async def test_a_path_that_is_not_there_is_an_error_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(PluginsFileError, match="does not exist"):
        async with Host.open(tmp_path / "nowhere.json"):
            pytest.fail("the host must not open")


async def test_a_started_plugin_has_its_log_its_folder_and_the_version(
    plugins_json: Write, caplog: pytest.LogCaptureFixture
) -> None:
    start = "(host.data_dir / 'mine').write_text(host.version); host.logger.warning('hello log')"
    file = plugins_json([{"name": "one"}], one=living("one", start=start))

    with caplog.at_level(logging.WARNING):
        async with Host.open(file) as host:
            assert host.plugins.get("one").state == "started"

    assert (file.parent / "state" / "data" / "one" / "mine").read_text() == "0.1.0"
    assert [(record.name, record.message) for record in caplog.records] == [("cyrene.plugin.one", "hello log")]


@pytest.mark.parametrize("runtime", ["process", "inline"])
async def test_a_plugin_knows_the_folder_where_relative_paths_of_its_configuration_start(
    plugins_json: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: str
) -> None:
    placed = """
        from cyrene_sdk import BasePlugin, PluginConfig, PluginMetadata, tool

        class Placed(BasePlugin):
            meta = PluginMetadata(name="placed", version="1.0.0")

            @tool(danger_level="low")
            async def place(self, config: PluginConfig) -> str:
                '''Tell the folder.'''
                return str(config.folder)
        """
    file = plugins_json([{"name": "placed", "runtime": runtime, "trust": "full"}], placed=placed)
    monkeypatch.chdir("/")
    async with Host.open(file) as host:
        result = await host.call("place")

    assert result.output == str(file.parent)
