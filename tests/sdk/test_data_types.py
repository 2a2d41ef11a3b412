"""The data types write what Go writes, and read it back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from cyrene_sdk import (
    DangerLevel,
    ErrorKind,
    Image,
    PluginAuthor,
    PluginMetadata,
    ProgressStatus,
    ToolComplexity,
    ToolDefinition,
    ToolProgress,
    ToolResult,
)
from cyrene_sdk.types import Wire

GOLDEN = Path(__file__).parent / "golden"

# What the Go struct of the same content becomes in `encoding/json`; a nil map is null, an empty one {}.
VALUES: dict[str, Wire] = {
    "plugin_author.zero": PluginAuthor(),
    "plugin_author.full": PluginAuthor(name="Ada", email="ada@example.org", url="https://example.org/ada"),
    "plugin_metadata.empty": PluginMetadata(name="hello", version="1.0.0", keywords=[], dependencies={}),
    "plugin_metadata.full": PluginMetadata(
        name="hello",
        display_name="打招呼",
        version="1.0.0",
        min_cyrene_version="0.1.0",
        author=PluginAuthor(name="your-name", email="you@example.org", url="https://example.org"),
        description="示例插件：向用户问好",
        license="MIT",
        keywords=["greeting", "问好"],
        category="tool",
        dependencies={"weather": "^1.2"},
        homepage="https://example.org/hello",
        repository="https://example.org/hello.git",
    ),
    "tool_definition.zero": ToolDefinition(),
    "tool_definition.empty": ToolDefinition(complexity=ToolComplexity.SIMPLE, parameters={}, returns={}),
    "tool_definition.full": ToolDefinition(
        id="hello",
        name="hello",
        display_name="打招呼",
        description="向用户打招呼。",
        category="tool",
        complexity=ToolComplexity.COMPLEX,
        parameters={"type": "object", "properties": {"name": {"type": "string", "description": "用户名字（可选）"}}},
        returns={"type": "object"},
        timeout_ms=3000,
        max_retries=2,
        danger_level=DangerLevel.HIGH,
    ),
    "tool_definition.ours": ToolDefinition(
        id="draw",
        name="draw",
        description="Draw <a> picture & send it",
        category="image",
        complexity=ToolComplexity.SIMPLE,
        parameters={"type": "object", "properties": {}},
        read_only=True,
        idempotent=False,
        triggers=["draw a cat", "/^paint/"],
        not_when=["draw a conclusion"],
        examples=[{}, {"size": 1.5}],
        secret_arguments=["key"],
        serial=True,
        makes=["image"],
        accepts=["image"],
    ),
    "image.empty": Image(url="https://example.org/cat.png"),
    "image.full": Image(mime="image/jpeg", base64="aGVsbG8="),
    "tool_result.zero": ToolResult(),
    "tool_result.full": ToolResult(
        tool_name="hello", success=True, output="开拓者，昔涟向你问好♪", error="with a note", duration_ms=12
    ),
    "tool_result.ours": ToolResult(
        tool_name="draw",
        error="no paint",
        data={"left": None, "colours": ["red", 1, 0.5, False]},
        images=[Image(base64="aGVsbG8=")],
        error_kind=ErrorKind.TOOL_ERROR,
        reason="tool",
        error_id="e-1",
        retryable=True,
        effect="unknown",
        attempts=3,
        plugin="art",
        call_id="c-1",
        notes=["'7' was read as 7"],
        need_ai_reply=False,
        already_sent=True,
        send_result_text=True,
        no_reply=True,
        save_to_memory=False,
    ),
    "tool_progress.zero": ToolProgress(),
    "tool_progress.empty": ToolProgress(status=ProgressStatus.RUNNING),
    "tool_progress.full": ToolProgress(
        execution_id="e-7",
        status=ProgressStatus.COMPLETED,
        progress=1.0,
        message="done",
        error="one page was skipped",
        result=ToolResult(tool_name="index", success=True, output="12 pages", duration_ms=1500),
    ),
}


def _golden(name: str) -> str:
    return (GOLDEN / f"{name}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_written_as_go_writes_it(name: str) -> None:
    assert json.loads(VALUES[name].to_json()) == json.loads(_golden(name))


@pytest.mark.parametrize("name", VALUES)
def test_what_go_wrote_is_read_as_the_same_value(name: str) -> None:
    assert type(VALUES[name]).from_json(_golden(name)) == VALUES[name]
    assert type(VALUES[name]).from_json(json.loads(_golden(name))) == VALUES[name]


@pytest.mark.parametrize("name", VALUES)
def test_what_was_read_is_written_again_without_a_change(name: str) -> None:
    assert type(VALUES[name]).from_json(_golden(name)).to_dict() == json.loads(_golden(name))


def test_every_golden_file_is_used() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == {*VALUES, "plugin_metadata.zero"}


def test_keys_keep_the_order_of_the_go_struct() -> None:
    assert list(json.loads(VALUES["tool_definition.full"].to_json())) == list(
        json.loads(_golden("tool_definition.full"))
    )


def test_a_plugin_without_name_and_version_is_refused() -> None:
    with pytest.raises(ValidationError) as refused:
        PluginMetadata.from_json(_golden("plugin_metadata.zero"))
    assert [(fault["loc"], fault["type"]) for fault in refused.value.errors()] == [
        (("name",), "missing"),
        (("version",), "missing"),
    ]


def test_null_zero_and_absent_all_mean_unset() -> None:
    absent = ToolDefinition.from_json('{"name": "x"}')
    assert ToolDefinition.from_json('{"name": "x", "timeout_ms": null, "triggers": null, "id": null}') == absent
    assert ToolDefinition.from_json('{"name": "x", "timeout_ms": 0, "danger_level": "", "complexity": ""}') == absent
    assert absent.timeout_ms is None
    assert absent.danger_level is None
    assert absent.complexity is ToolComplexity.SIMPLE


def test_an_unset_timeout_is_absent_on_the_wire_and_8000_in_effect() -> None:
    assert ToolDefinition(name="x").limit_ms == 8000
    assert "timeout_ms" not in ToolDefinition(name="x").to_dict()
    assert ToolDefinition(name="x", timeout_ms=50).limit_ms == 50


def test_an_author_may_be_a_plain_name() -> None:
    assert PluginMetadata(name="x", version="1", author="Ada").author == PluginAuthor(name="Ada")
    assert PluginMetadata.from_json('{"name": "x", "version": "1", "author": "Ada"}').author.name == "Ada"


def test_unknown_keys_are_kept_out_with_a_note_each() -> None:
    notes: list[str] = []
    text = '{"name": "x", "version": "1", "stars": 5, "author": {"name": "Ada", "age": 36}, "icon": "x"}'
    metadata = PluginMetadata.from_json(text, notes=notes)
    assert metadata == PluginMetadata(name="x", version="1", author="Ada")
    assert notes == [
        "PluginMetadata: unknown key 'stars' was left out",
        "PluginMetadata: unknown key 'icon' was left out",
        "PluginAuthor: unknown key 'age' was left out",
    ]


def test_unknown_keys_without_a_list_for_notes_are_kept_out_too() -> None:
    assert PluginAuthor.from_json('{"name": "Ada", "age": 36}') == PluginAuthor(name="Ada")


def test_a_misspelt_field_in_python_is_an_error() -> None:
    with pytest.raises(ValidationError, match="dangerlevel"):
        ToolDefinition(name="x", dangerlevel="low")  # type: ignore[call-arg]


@pytest.mark.parametrize("text", ["[]", '"x"', "{", '{"progress": NaN}', '{"progress": Infinity}', '{"progress": "x"}'])
def test_what_is_no_such_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        ToolProgress.from_json(text)


def test_what_json_cannot_say_is_not_written() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        ToolProgress(progress=float("nan")).to_json()


def test_values_cannot_be_changed_and_share_nothing_with_what_they_write() -> None:
    definition = ToolDefinition(name="x", parameters={"type": "object"})
    with pytest.raises(ValidationError, match="frozen"):
        definition.name = "y"  # type: ignore[misc]
    definition.to_dict()["parameters"]["type"] = "array"
    assert definition.parameters == {"type": "object"}


@pytest.mark.parametrize("sources", [{}, {"base64": "eA==", "url": "https://example.org"}])
def test_an_image_has_exactly_one_source(sources: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="an image needs exactly one of 'base64' and 'url'"):
        Image(**sources)


def test_danger_levels_are_ranked() -> None:
    assert sorted(DangerLevel, key=lambda level: level.rank) == [DangerLevel.LOW, DangerLevel.MEDIUM, DangerLevel.HIGH]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=3)
TEXTS = st.lists(st.text(), max_size=3)
IMAGES = st.builds(Image, mime=st.text(), base64=st.text(min_size=1))
RESULTS: st.SearchStrategy[Any] = st.builds(
    ToolResult,
    tool_name=st.text(),
    success=st.booleans(),
    output=st.text(),
    error=st.text(),
    duration_ms=st.integers(min_value=0),
    data=JSON,
    images=st.lists(IMAGES, max_size=2),
    error_kind=st.none() | st.sampled_from(ErrorKind),
    retryable=st.booleans(),
    effect=st.sampled_from([None, "none", "unknown"]),
    notes=TEXTS,
    need_ai_reply=st.none() | st.booleans(),
    save_to_memory=st.booleans(),
)
WIRES: st.SearchStrategy[Any] = st.one_of(
    RESULTS,
    st.builds(
        ToolProgress,
        execution_id=st.text(),
        status=st.sampled_from(ProgressStatus),
        progress=st.floats(0, 1),
        message=st.text(),
        result=st.none() | RESULTS,
    ),
    st.builds(
        ToolDefinition,
        name=st.text(),
        display_name=st.text(),
        complexity=st.sampled_from(ToolComplexity),
        parameters=OBJECTS,
        returns=OBJECTS,
        timeout_ms=st.none() | st.integers(min_value=1),
        max_retries=st.integers(min_value=0),
        danger_level=st.none() | st.sampled_from(DangerLevel),
        idempotent=st.none() | st.booleans(),
        triggers=TEXTS,
        examples=st.lists(OBJECTS, max_size=2),
        serial=st.booleans(),
    ),
    st.builds(
        PluginMetadata,
        name=st.text(min_size=1),
        version=st.text(min_size=1),
        display_name=st.text(),
        author=st.text() | st.builds(PluginAuthor, name=st.text(), url=st.text()),
        keywords=TEXTS,
        dependencies=st.dictionaries(st.text(), st.text(), max_size=3),
    ),
)


@settings(deadline=None)
@given(WIRES)
def test_every_value_is_read_back_as_it_was_written(value: Wire) -> None:
    assert type(value).from_json(value.to_json()) == value
