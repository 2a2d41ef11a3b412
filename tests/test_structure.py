"""The shape of the sources: layers, size, public names and lazy imports."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Imports go to later lines only; modules and packages on one line do not import each other.
LAYERS = {
    "cyrene_host": [
        ["cli"],
        ["serve"],
        ["api", "openai", "mcp_server", "console"],
        ["chat"],
        ["host"],
        ["supervise"],
        ["runtimes"],
        ["call", "record"],
        ["catalog"],
        ["errors"],
        ["version"],
    ],
    "cyrene_sdk": [
        ["_hatch"],
        ["_worker"],
        ["plugin"],
        ["tools"],
        ["progress", "signature"],
        ["binding", "docstrings"],
        ["protocols", "threads"],
        ["context", "hooks"],
        ["types"],
        ["errors"],
    ],
}

# (importing package, imported package): why the import stands inside a function.
LAZY_IMPORTS: dict[tuple[str, str], str] = {
    ("cyrene_host.cli.commands", "cyrene_host.cli"): "start-up: each command loads what it needs; `--help` needs none",
    (
        "cyrene_host.cli.doctor",
        "cyrene_host.cli.diagnosis",
    ): "it tells which package is missing, so it needs none itself",
    ("cyrene_host.cli.doctor", "cyrene_host.cli.isolation"): "likewise",
    ("cyrene_host.cli.program", "cyrene_host.cli.usage"): "so that a package that is missing is told in four parts",
    ("cyrene_sdk._worker.__main__", "cyrene_sdk._worker"): "start-up and memory: each of the three processes needs one",
    ("cyrene_sdk._worker.process", "uvloop"): "an extra: asyncio's own loop serves without it",
    ("cyrene_host.cli.long_work", "cyrene_host.cli"): "likewise",
    ("cyrene_host.cli.progress", "rich"): "start-up: only a bar for a person who waits at a terminal needs it",
    ("cyrene_host.cli.screen", "rich"): "start-up: only a table for a person at a terminal needs it",
    (
        "cyrene_host.host.host",
        "cyrene_host.host.desk",
    ): "start-up: who opens a host pays it, in a thread",
    ("cyrene_host.host.listing", "cyrene_host.host.tool_schemas"): "start-up: lists compile no schema, `why` one",
    (
        "cyrene_host.catalog.settings",
        "platformdirs",
    ): "start-up: only a host without a state_dir of its own asks for it",
    ("cyrene_host.record", "cyrene_host.record.tables"): "start-up: SQLAlchemy takes 0.5 s; only a thread pays it",
    ("cyrene_host.record.store", "cyrene_host.record.database"): "likewise",
    ("cyrene_host.record.executions", "cyrene_host.record.execution_rows"): "likewise",
    ("cyrene_host.record.approvals", "cyrene_host.record.approval_rows"): "likewise",
    ("cyrene_host.record.idempotency", "cyrene_host.record.idempotency_rows"): "likewise",
    ("cyrene_host.record.audit", "cyrene_host.record.audit_reading"): "start-up: who writes the audit does not read it",
    ("cyrene_host.record.audit", "cyrene_host.record.audit_verify"): "likewise",
    ("cyrene_host.record.database", "alembic"): "start-up: only a database of an older schema needs it",
    ("cyrene_knowledge.pdf", "pypdf"): "start-up: a tenth of a second that only a PDF needs",
    ("cyrene_host.catalog.versions", "packaging.specifiers"): "start-up: only a plugin that names a range needs it",
}

# module: why it is over 300 lines of code.
LONG_MODULES: dict[str, str] = {}

SDK_MAY_IMPORT = {"cyrene_sdk", "pluggy", "pydantic", "pydantic_core", "typing_extensions", "uvloop"}

FORBIDDEN_NAMES = {"http", "ray", "util", "utils", "helper", "helpers", "common", "base", "manager", "managers"}
# Written in pieces, so that this file does not hold what it forbids.
FORBIDDEN_TEXT = {
    "a package registry's host": r"pypi\.org|python" + r"hosted|registry\.npmjs|deb\.debian",
    "a path of one machine": r"(?<![\w.])/(work|farm|root)/",
}
UNFINISHED = r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX|NotImplemented" + r"Error)\b"


@dataclass(frozen=True)
class Module:
    """One source file of a package under test."""

    name: str
    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def package(self) -> str:
        return self.name.partition(".")[0]

    @property
    def layer(self) -> str:
        """The first name below the package; empty for the package's own `__init__`."""
        return self.name.split(".")[1] if "." in self.name else ""

    def __str__(self) -> str:
        return self.name


def _modules(folder: str) -> list[Module]:
    top = ROOT / folder
    named = [(path, path.relative_to(top.parent).with_suffix("")) for path in sorted(top.rglob("*.py"))]
    return [Module(".".join(dotted.parts).removesuffix(".__init__"), path) for path, dotted in named]


SDK = _modules("cyrene_sdk/cyrene_sdk")
HOST = _modules("cyrene_host")
PLUGINS = [module for folder in sorted(ROOT.glob("plugins/*/cyrene_*")) for module in _modules(str(folder))]
SHIPPED = [*SDK, *HOST, *PLUGINS]
LAYERED = [*SDK, *HOST]


def _imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every imported name in full (`pathlib.Path`), with its line; a relative import keeps its dots."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            yield from ((f"{source}.{alias.name}", node.lineno) for alias in node.names)


def _rank(package: str, layer: str) -> int | None:
    return next((rank for rank, layers in enumerate(LAYERS[package]) if layer in layers), None)


def _within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


@pytest.mark.parametrize("module", LAYERED, ids=str)
def test_every_module_belongs_to_a_layer(module: Module) -> None:
    assert not module.layer or _rank(module.package, module.layer) is not None, f"{module} is in no layer of LAYERS"


@pytest.mark.parametrize("module", [module for module in LAYERED if module.layer], ids=str)
def test_imports_go_to_a_later_layer_only(module: Module) -> None:
    own = _rank(module.package, module.layer)
    wrong = []
    for name, line in _imports(module.tree):
        package, _, rest = name.partition(".")
        if package not in LAYERS:
            continue
        rank = _rank(package, rest.partition(".")[0])
        if package == module.package:
            allowed = rest.partition(".")[0] == module.layer or (rank is not None and own is not None and rank > own)
        else:
            allowed = module.package == "cyrene_host"
        if not allowed:
            wrong.append(f"line {line}: {name}")
    assert wrong == []


@pytest.mark.parametrize("module", SHIPPED, ids=str)
def test_imports_are_absolute(module: Module) -> None:
    assert [(name, line) for name, line in _imports(module.tree) if name.startswith(".")] == []


@pytest.mark.parametrize("module", SDK, ids=str)
def test_the_sdk_imports_only_what_it_depends_on(module: Module) -> None:
    allowed = SDK_MAY_IMPORT | sys.stdlib_module_names | ({"hatchling"} if module.layer == "_hatch" else set())
    assert {name.partition(".")[0] for name, _ in _imports(module.tree)} <= allowed


def _code_lines(module: Module) -> int:
    docstrings: set[int] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if ast.get_docstring(node, clean=False) is not None:
                docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = enumerate(module.text.splitlines(), 1)
    return sum(
        1 for number, line in lines if line.strip() and not line.strip().startswith("#") and number not in docstrings
    )


def test_no_module_has_over_300_lines_of_code_without_a_reason() -> None:
    assert {module.name for module in SHIPPED if _code_lines(module) > 300} == set(LONG_MODULES)


@pytest.mark.parametrize("module", SHIPPED, ids=str)
def test_no_function_spans_over_60_lines(module: Module) -> None:
    functions = [node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert [node.name for node in functions if (node.end_lineno or 0) - node.lineno > 60] == []


def _visible(module: Module) -> set[str]:
    """Public names that a module defines; of a package's `__init__` also those it takes from its own modules.

    A lazy `__init__` names the latter under TYPE_CHECKING.
    """
    names: set[str] = set()
    typed = [node for branch in module.tree.body if isinstance(branch, ast.If) for node in branch.body]
    for node in [*module.tree.body, *typed]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif (
            isinstance(node, ast.ImportFrom)
            and module.path.name == "__init__.py"
            and _within(node.module or "", module.name)
        ):
            names.update(alias.asname or alias.name for alias in node.names)
    return {name for name in names if not name.startswith("_")}


def _declared(module: Module) -> list[str] | None:
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return list(ast.literal_eval(node.value))
    return None


@pytest.mark.parametrize("module", LAYERED, ids=str)
def test_what_is_declared_public_is_what_is_visible(module: Module) -> None:
    visible, declared = _visible(module), _declared(module)
    visible -= {name for name in visible if name.isupper()} - {*(declared or ())}  # a constant may be listed
    if declared is None and (module.path.name == "__main__.py" or not visible):
        return
    assert declared is not None, f"{module} has no __all__, but shows {sorted(visible)}"
    assert {name for name in declared if not name.startswith("_")} == visible


@pytest.mark.parametrize("package", ["cyrene_host", "cyrene_sdk"])
def test_every_name_declared_public_can_be_imported(package: str) -> None:
    script = f"import {package} as p, sys; sys.exit(', '.join(n for n in p.__all__ if not hasattr(p, n)) or 0)"
    ended = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, timeout=30, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def _inner_imports(module: Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _imports(node)


def test_imports_inside_functions_are_the_listed_ones() -> None:
    used = set()
    unlisted = []
    for module in SHIPPED:
        for name, line in _inner_imports(module):
            keys = {key for key in LAZY_IMPORTS if _within(module.name, key[0]) and _within(name, key[1])}
            used |= keys
            if not keys:
                unlisted.append(f"{module.path.relative_to(ROOT)}:{line}: {name}")
    assert unlisted == []
    assert used == set(LAZY_IMPORTS), "an entry of LAZY_IMPORTS is needed no more"


def test_importing_the_host_package_loads_nothing_heavy() -> None:
    script = (
        "import json, sys; old = set(sys.modules); import cyrene_host; print(json.dumps([*set(sys.modules) - old]))"
    )
    printed = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, timeout=30, check=True
    )
    loaded = set(json.loads(printed.stdout))
    assert "cyrene_host" in loaded
    assert {name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names} == {
        "cyrene_host",
        "cyrene_host.version",
    }
    assert loaded.isdisjoint({"asyncio", "importlib.metadata", "inspect", "logging", "typing"})


def _tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_or_folder_has_a_name_that_says_nothing_or_hides_a_library() -> None:
    python = [path.relative_to(ROOT) for path in _tracked() if path.suffix == ".py"]
    assert [str(path) for path in python if FORBIDDEN_NAMES & {*path.parent.parts, path.stem}] == []


@pytest.mark.parametrize("what", FORBIDDEN_TEXT)
def test_no_file_names(what: str) -> None:
    pattern = re.compile(FORBIDDEN_TEXT[what].encode())
    found = [str(path.relative_to(ROOT)) for path in _tracked() if pattern.search(path.read_bytes())]
    assert found == [], f"these name {what}"


@pytest.mark.parametrize("module", SHIPPED, ids=str)
def test_nothing_shipped_is_left_unfinished(module: Module) -> None:
    found = [line.strip() for line in module.text.splitlines() if re.search(UNFINISHED, line)]
    assert found == []


def test_the_workspace_lists_the_sdk_and_every_bundled_plugin() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    plugins = [str(path.parent.relative_to(ROOT)) for path in ROOT.glob("plugins/*/pyproject.toml")]
    assert sorted(settings["tool"]["uv"]["workspace"]["members"]) == sorted(["cyrene_sdk", *plugins])
