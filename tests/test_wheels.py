"""What is published: each distribution built from its own sdist, and installed away from this checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
UV = ROOT / ".uv" / "bin" / "uv"
LOCK = ROOT / "requirements.lock"
FOLDERS = {
    "cyrene_sdk": ROOT / "cyrene_sdk",
    "cyrene_host": ROOT,
    **{f"cyrene_{path.parent.name}": path.parent for path in sorted(ROOT.glob("plugins/*/pyproject.toml"))},
}
BUNDLED = [package for package in FOLDERS if package not in ("cyrene_sdk", "cyrene_host")]

pytestmark = [pytest.mark.xdist_group("wheels"), pytest.mark.timeout(600)]
Run = Callable[..., str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, slow: Callable[[float], float]) -> Run:
    """Return a function that runs a program in a user's clean surroundings and returns what it prints."""
    home = tmp_path_factory.mktemp("home")
    kept = ("PATH", "UV_CACHE_DIR", "XDG_CACHE_HOME", "SSL_CERT_FILE", "LANG")
    surroundings = {name: os.environ[name] for name in kept if name in os.environ}
    surroundings.setdefault("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv"))

    def run(*command: str | Path, cwd: Path = home) -> str:
        ended = subprocess.run(
            [str(part) for part in command],
            cwd=cwd, env={**surroundings, "HOME": str(home), "PYTHONUTF8": "1"},
            capture_output=True, text=True, encoding="utf-8", timeout=slow(120), check=False,
        )  # fmt: skip
        assert ended.returncode == 0, f"{' '.join(map(str, command))}\n{ended.stdout}{ended.stderr}"
        return ended.stdout

    return run


@pytest.fixture(scope="module")
def wheels(run: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel of each package, built from its unpacked sdist with the locked build backend."""
    built = {}
    for package, folder in FOLDERS.items():
        out = tmp_path_factory.mktemp(package)
        run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", out, cwd=folder)
        with tarfile.open(next(out.glob("*.tar.gz"))) as sdist:
            sdist.extractall(out, filter="data")
        source = next(path for path in out.iterdir() if path.is_dir())
        run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out, cwd=source)
        built[package] = next(out.glob("*.whl"))
    return built


def _make_venv(run: Run, folder: Path, *requirements: str | Path, wheels: dict[str, Path]) -> Path:
    """Make a virtual environment with `requirements` in locked versions, and return its `bin` folder.

    The packages come from uv's cache, which `make setup` filled; from the index where that was emptied since.
    """
    run(UV, "venv", "--quiet", "--python", sys.executable, folder)
    found = [part for wheel in wheels.values() for part in ("--find-links", wheel.parent)]
    locked = ("--constraint", LOCK, "--build-constraint", LOCK)
    install = (UV, "pip", "install", "--quiet", "--python", folder, *found, *locked, *requirements)
    try:
        run(*install, "--offline")
    except AssertionError:
        run(*install)
    return folder / "bin"


@pytest.fixture(scope="module")
def installed(run: Run, wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment with all distributions."""
    return _make_venv(run, tmp_path_factory.mktemp("all") / "venv", *wheels.values(), wheels=wheels)


@pytest.mark.parametrize("package", FOLDERS)
def test_a_wheel_holds_its_typed_package_and_nothing_else(package: str, wheels: dict[str, Path]) -> None:
    with zipfile.ZipFile(wheels[package]) as wheel:
        files = wheel.namelist()
    distribution = "-".join(wheels[package].name.split("-")[:2])
    assert {file.partition("/")[0] for file in files} == {package, f"{distribution}.dist-info"}
    assert {f"{package}/__init__.py", f"{package}/py.typed", f"{distribution}.dist-info/licenses/LICENSE"} <= {*files}
    assert [file for file in files if "__pycache__" in file or "/tests/" in file] == []


@pytest.mark.parametrize("package", BUNDLED)
def test_the_wheel_of_a_bundled_plugin_carries_its_manifest(package: str, wheels: dict[str, Path]) -> None:
    with zipfile.ZipFile(wheels[package]) as wheel:
        manifest = json.loads(wheel.read(f"{package}/cyrene-plugin.json"))
    assert f"cyrene_{manifest['metadata']['name']}" == package


def test_the_sdk_alone_brings_pydantic_and_pluggy_only(run: Run, tmp_path: Path) -> None:
    programs = _make_venv(run, tmp_path / "venv", ROOT / "cyrene_sdk", wheels={})

    requires = "import importlib.metadata as m; print(*m.requires('cyrene-sdk'), sep='\\n')"
    direct = {line.partition(">")[0] for line in run(programs / "python", "-I", "-c", requires).split()}
    listed = json.loads(run(UV, "pip", "list", "--python", tmp_path / "venv", "--format", "json"))

    assert direct == {"pydantic", "pluggy"}
    assert {entry["name"] for entry in listed} == {
        "cyrene-sdk", "pluggy", "pydantic",
        "annotated-types", "pydantic-core", "typing-extensions", "typing-inspection",  # what pydantic needs
    }  # fmt: skip
    assert run(programs / "python", "-I", "-c", "import cyrene_sdk; print(cyrene_sdk.ToolResult().to_json())")


def test_the_installed_host_states_the_version_of_its_distribution(run: Run, installed: Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

    assert run(installed / "cyrene", "--version").split()[-1] == version
    assert (
        run(installed / "python", "-I", "-c", "import cyrene_host; print(cyrene_host.__version__)").strip() == version
    )


def test_the_installed_host_calls_an_installed_plugin(run: Run, installed: Path, tmp_path: Path) -> None:
    assert run(installed / "cyrene", "call", "hello", "name=开拓者", cwd=tmp_path) == "开拓者，昔涟向你问好♪\n"


def test_the_installed_packages_come_from_outside_the_checkout(run: Run, installed: Path) -> None:
    script = "import cyrene_host, cyrene_sdk; print(cyrene_host.__file__); print(cyrene_sdk.__file__)"
    places = [Path(line) for line in run(installed / "python", "-I", "-c", script).splitlines()]
    assert len(places) == 2
    assert not [place for place in places if place.is_relative_to(ROOT)]
