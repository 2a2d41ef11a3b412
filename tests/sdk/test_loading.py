"""A plugin's code is imported, and each way that this fails says what, where and how to mend it."""

from __future__ import annotations

import gc
import itertools
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import ModuleType

import pytest

from cyrene_sdk import BasePlugin, PluginMetadata
from cyrene_sdk._worker.faults import StageError
from cyrene_sdk._worker.loading import Code, load_plugin, plugin_classes

Write = Callable[..., Code]

_numbers = itertools.count(1)

PLUGIN = """
from cyrene_sdk import BasePlugin, PluginMetadata

class Weather(BasePlugin):
    meta = PluginMetadata(name="weather", version="1.0.0")
"""


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Write]:
    """Return a function that writes a package from its files' texts and gives the Code of a class in it."""
    modules, path = set(sys.modules), list(sys.path)

    def written(init: str, attribute: str | None = None, /, **files: str) -> Code:
        name = f"loaded_{next(_numbers)}"
        package = tmp_path / name
        package.mkdir()
        (package / "__init__.py").write_text(init.replace("PACKAGE", name))
        for stem, text in files.items():
            (package / f"{stem}.py").write_text(text.replace("PACKAGE", name))
        return Code(name, attribute, str(tmp_path))

    yield written
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def refused(code: Code) -> StageError:
    with pytest.raises(StageError) as caught:
        load_plugin(code)
    assert caught.value.stage == "load"
    return caught.value


def test_the_only_plugin_class_of_a_module_is_found_without_its_name(write: Write) -> None:
    plugin = load_plugin(write(PLUGIN))

    assert type(plugin).__name__ == "Weather"
    assert isinstance(plugin, BasePlugin)


def test_a_class_that_the_package_takes_from_its_own_module_is_its_plugin(write: Write) -> None:
    code = write("from PACKAGE.weather import Weather", weather=PLUGIN)

    assert type(load_plugin(code)).__name__ == "Weather"


def test_a_class_of_another_package_is_not_taken_for_the_plugin(write: Write) -> None:
    other = write(PLUGIN)
    load_plugin(other)
    code = write(f"from {other.module} import Weather")

    assert refused(code).what == f"module '{code.module}' has no plugin class"


def test_one_class_under_two_names_is_one_plugin(write: Write) -> None:
    assert type(load_plugin(write(PLUGIN + "\nPlugin = Weather\n"))).__name__ == "Weather"


def test_a_class_or_a_factory_is_found_by_its_name(write: Write) -> None:
    source = PLUGIN + "\nclass Other(Weather): ...\n\ndef make():\n    return Other()\n"

    assert type(load_plugin(write(source, "Weather"))).__name__ == "Weather"
    assert type(load_plugin(write(source, "make"))).__name__ == "Other"


def test_a_plugin_that_derives_from_nothing_is_a_plugin_by_its_methods(write: Write) -> None:
    methods = "\n".join(f"    def {name}(self, *args): ..." for name in ("metadata", "init", "start", "stop", "health"))
    code = write(f"class Bare:\n{methods}\n    def tools(self): return []\n")

    assert type(load_plugin(code)).__name__ == "Bare"


def test_several_plugin_classes_ask_for_a_name(write: Write) -> None:
    code = write(PLUGIN + "\nclass Second(Weather): ...\n")

    assert str(refused(code)) == (
        f"module '{code.module}' has several plugin classes: 'Weather', 'Second'\n"
        f"  where: {code.folder}/{code.module}/__init__.py\n"
        '  mend:  name the class in the entry: "class": "…"'
    )


def test_a_misspelled_class_is_told_with_the_nearest_one(write: Write) -> None:
    code = write(PLUGIN, "Weathr")

    assert str(refused(code)) == (
        f"module '{code.module}' has no class 'Weathr'\n"
        f"  where: {code.folder}/{code.module}/__init__.py\n"
        "  mend:  did you mean 'Weather'?"
    )


def test_a_class_like_no_other_is_told_without_a_guess(write: Write) -> None:
    assert refused(write(PLUGIN, "Zzz")).mend == "name one of its classes in the entry's 'class'"


def test_a_value_that_cannot_be_called_is_no_class(write: Write) -> None:
    code = write("plugin = 3", "plugin")

    assert str(refused(code)) == (
        f"'{code}' is no plugin class: it is a int\n"
        f"  where: {code.folder}/{code.module}/__init__.py\n"
        "  mend:  name a class derived from cyrene_sdk.BasePlugin, or a function that returns a plugin"
    )


def test_an_object_without_the_methods_is_no_plugin(write: Write) -> None:
    code = write("class Half:\n    def metadata(self): ...\n    def init(self, config): ...\n", "Half")

    assert str(refused(code)) == (
        f"'{code}' is no plugin: it has no 'start', 'stop', 'health', 'tools'\n"
        f"  where: {code.folder}/{code.module}/__init__.py\n"
        "  mend:  derive the class from cyrene_sdk.BasePlugin, or write the missing methods"
    )


def test_a_constructor_that_raises_is_told_with_its_line(write: Write) -> None:
    code = write(PLUGIN + "\n    def __init__(self):\n        raise ValueError('no key')\n")
    error = refused(code)

    assert error.what == f"'{code}' cannot be made: ValueError: no key"
    assert error.where == f"{code.folder}/{code.module}/__init__.py line 8"
    assert "ValueError: no key" in error.trace


def test_a_module_that_raises_at_import_is_told_with_its_line_and_traceback(write: Write) -> None:
    code = write("import sys\n\nraise ImportError('libweather is missing')\n")
    error = refused(code)

    assert str(error) == (
        f"module '{code.module}' failed to import: ImportError: libweather is missing\n"
        f"  where: {code.folder}/{code.module}/__init__.py line 3\n"
        "  mend:  mend the plugin's code or install what it imports; `cyrene check` runs the same import"
    )
    assert error.trace.rstrip().endswith("ImportError: libweather is missing")


def test_an_error_in_a_library_is_told_with_the_plugins_own_line(write: Write) -> None:
    code = write("import json\n\nSETTINGS = json.loads('{')\n")

    assert refused(code).where == f"{code.folder}/{code.module}/__init__.py line 3"


def test_a_module_that_exits_at_import_is_told(write: Write) -> None:
    code = write("import sys\nsys.exit(3)\n")
    error = refused(code)

    assert error.what == f"module '{code.module}' exited during import (exited with status 3)"
    assert error.where == f"{code.folder}/{code.module}/__init__.py line 2"


@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "GeneratorExit", "type('Odd', (BaseException,), {})"])
def test_no_exception_at_import_passes_through(write: Write, raised: str) -> None:
    assert "failed to import" in refused(write(f"raise {raised}('x')")).what


def test_a_syntax_error_is_told_with_file_and_line(write: Write) -> None:
    code = write("from PACKAGE.broken import x", broken="a = 1\nb = (\n")
    error = refused(code)

    assert error.what.startswith(f"module '{code.module}' failed to import: SyntaxError: '(' was never closed")
    assert error.where == f"{code.folder}/{code.module}/broken.py line 2"


def test_a_module_that_is_not_there_is_told_with_the_folder(write: Write, tmp_path: Path) -> None:
    assert str(refused(Code("cyrene_absent", None, str(tmp_path)))) == (
        f"module 'cyrene_absent' was not found in {tmp_path}\n"
        "  mend:  install the plugin's package, or correct 'import' or 'path' in its entry"
    )
    assert refused(Code("cyrene_absent.deep")).what == (
        "module 'cyrene_absent.deep' was not found in the host's Python environment"
    )


def test_a_submodule_that_is_not_there_is_told(write: Write) -> None:
    code = write(PLUGIN)
    deep = Code(f"{code.module}.absent", None, code.folder)

    assert refused(deep).what == f"module '{deep.module}' was not found in {code.folder}"


@pytest.mark.parametrize("missing", ["not_installed_here", "loaded"])
def test_a_module_that_the_plugin_itself_lacks_is_the_plugins_error(write: Write, missing: str) -> None:
    code = write(f"import {missing}")  # 'loaded' is how the module's own name begins

    assert refused(code).what == (
        f"module '{code.module}' failed to import: ModuleNotFoundError: No module named '{missing}'"
    )


def test_a_corrected_file_is_read_afresh(write: Write) -> None:
    code = write("from PACKAGE.weather import Weather", weather="raise RuntimeError")
    refused(code)
    (Path(str(code.folder)) / code.module / "weather.py").write_text(PLUGIN)

    assert type(load_plugin(code)).__name__ == "Weather"


def test_the_folder_goes_before_an_installed_package_of_the_same_name(write: Write, tmp_path: Path) -> None:
    (tmp_path / "colorsys.py").write_text(PLUGIN)  # a module of the standard library has this name
    sys.modules.pop("colorsys", None)

    assert type(load_plugin(Code("colorsys", None, str(tmp_path)))).__name__ == "Weather"
    del sys.modules["colorsys"]


def test_a_module_loaded_from_elsewhere_is_not_taken_for_the_plugins(write: Write, tmp_path: Path) -> None:
    code = write(PLUGIN)
    load_plugin(code)
    other = tmp_path / "other"
    other.mkdir()

    assert str(refused(Code(code.module, None, str(other)))) == (
        f"a module '{code.module}' is loaded from '{code.folder}/{code.module}' already, not from '{other}'\n"
        f"  mend:  rename the plugin's module '{code.module}': module names are shared in one interpreter"
    )


def test_a_second_load_takes_the_imported_module(write: Write) -> None:
    code = write(PLUGIN)

    assert type(load_plugin(code)) is type(load_plugin(code))


def test_two_entries_for_one_module_may_load_at_the_same_time(write: Write) -> None:
    code = write("import threading\nbegun, go = threading.Event(), threading.Event()\nfrom . import slow\n" + PLUGIN,
                 slow="from PACKAGE import begun, go\nbegun.set()\ngo.wait(10)")  # fmt: skip
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(load_plugin, code)
        while (module := sys.modules.get(code.module)) is None or not hasattr(module, "begun"):
            assert not first.done()
        module.begun.wait(10)
        second = pool.submit(load_plugin, code)
        assert not wait([second], timeout=0.2).done  # it waits for the module to be complete
        module.go.set()

        assert type(first.result(10)) is type(second.result(10))


def test_a_plugin_is_forgotten_while_others_are_imported(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    code = write("raise ImportError('x')")
    many = dict.fromkeys(map(str, range(5000)))  # more than what Python takes from its store without collecting
    monkeypatch.setattr(sys, "path_importer_cache", {**sys.path_importer_cache, **many})

    def another_import(*_: object) -> None:
        sys.path_importer_cache[f"/of/another/plugin/{next(_numbers)}"] = None

    threshold = gc.get_threshold()
    gc.callbacks.append(another_import)  # the collector stands for a thread: it comes in between at any allocation
    try:
        gc.set_threshold(1)
        error = refused(code)
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(another_import)

    assert error.what == f"module '{code.module}' failed to import: ImportError: x"


def test_siblings_of_the_package_are_found_and_hide_nothing(write: Write, tmp_path: Path) -> None:
    (tmp_path / "loaded_sibling.py").write_text("NAME = 'sibling'")
    (tmp_path / "json.py").write_text("raise RuntimeError")
    code = write("import json, loaded_sibling\njson.loads('1')\n" + PLUGIN)

    assert type(load_plugin(code)).__name__ == "Weather"


def test_a_module_inside_a_namespace_package_is_loaded(write: Write, tmp_path: Path) -> None:
    (tmp_path / "loaded_space").mkdir()
    (tmp_path / "loaded_space" / "weather.py").write_text(PLUGIN)

    assert type(load_plugin(Code("loaded_space.weather", None, str(tmp_path)))).__name__ == "Weather"


def test_code_reads_what_it_wrote_and_prints_as_module_and_class() -> None:
    code = Code("cyrene_weather", "Weather", "/plugins")

    assert Code.from_dict(code.to_dict()) == code
    assert Code.from_dict({"module": "cyrene_weather"}) == Code("cyrene_weather")
    assert str(code) == "cyrene_weather:Weather"
    assert str(Code("cyrene_weather")) == "cyrene_weather"


def test_plugin_classes_leaves_out_what_is_no_plugin() -> None:
    module = ModuleType("some_plugin")

    class Mine(BasePlugin):
        meta = PluginMetadata(name="mine", version="1.0.0")

    Mine.__module__ = "some_plugin.inner"
    vars(module).update(Mine=Mine, BasePlugin=BasePlugin, number=3, text=str, loaded=Mine())

    assert plugin_classes(module) == ["Mine"]


def test_many_plugins_load_side_by_side_and_broken_ones_harm_none(write: Write, tmp_path: Path) -> None:
    codes = []
    for number in range(150):
        code = write(PLUGIN if number % 3 else "raise ValueError('no')\n")
        folder = tmp_path / str(number)
        folder.mkdir()
        codes.append(Code(code.module, None, str((tmp_path / code.module).rename(folder / code.module).parent)))

    def outcome(code: Code) -> str:
        try:
            return type(load_plugin(code)).__name__
        except StageError as error:
            return error.what.partition(": ")[2]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(40) as pool:
            found = list(pool.map(outcome, codes))
    finally:
        sys.setswitchinterval(interval)

    assert found == ["Weather" if number % 3 else "ValueError: no" for number in range(150)]
