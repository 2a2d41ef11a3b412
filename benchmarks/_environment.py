"""The environment with the peers, made beside the checkout's own, so that all rows run in one process."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tomllib
from pathlib import Path

__all__ = ["PEERS", "continue_in_peer_environment"]

PEERS = ("openai-agents==0.24.0", "pydantic-ai-slim==2.68.0", "uvloop==0.23.0")

_ROOT = Path(__file__).resolve().parent.parent
_HOME = _ROOT / ".venv-bench"
_PYTHON = _HOME / "bin" / "python"
_UV = _ROOT / ".uv" / "bin" / "uv"
_STAMP = _HOME / "recipe.txt"


def continue_in_peer_environment() -> None:
    """Run the rest of the script in `.venv-bench`, made first if it is absent or its recipe changed.

    Returns only where the script runs there already; elsewhere the process is replaced.
    """
    if Path(sys.prefix) == _HOME:
        return
    recipe = _recipe()
    if not _STAMP.is_file() or _STAMP.read_text() != recipe:
        _make(recipe.splitlines()[1:])
        _STAMP.write_text(recipe)
    sys.stdout.flush()
    os.execve(_PYTHON, [str(_PYTHON), *sys.argv], _environ())


def _recipe() -> str:
    needs = {*PEERS}
    for project in (_ROOT, _ROOT / "cyrene_sdk"):
        declared = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
        needs.update(need for need in declared if not need.startswith("cyrene-"))
    return "\n".join([f"python {platform.python_version()}", *sorted(needs)])


def _make(needs: list[str]) -> None:
    print(f"making {_HOME} (once)", file=sys.stderr)
    if _UV.is_file():
        _run(_UV, "venv", "--quiet", "--clear", "--python", sys.executable, _HOME)
        install: list[str | Path] = [_UV, "pip", "install", "--quiet", "--compile-bytecode", "--python", _PYTHON]
    else:
        _run(sys.executable, "-m", "venv", "--clear", _HOME)
        install = [_PYTHON, "-m", "pip", "install", "--quiet"]
    _run(*install, *needs)
    _run(*install, "--no-deps", "-e", _ROOT / "cyrene_sdk", "-e", _ROOT)


def _run(*command: str | Path) -> None:
    subprocess.run([str(part) for part in command], check=True, env=_environ(), stdout=sys.stderr)


def _environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
