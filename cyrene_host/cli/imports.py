"""What a plugin's modules do to the whole process when they are imported, read from their source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

__all__ = ["log_hijacks"]

_LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def log_hijacks(location: Path) -> Iterator[str]:
    """Yield the file and line of each `logging.basicConfig` that runs when a module below `location` is imported."""
    for file in sorted(location.rglob("*.py")) if location.is_dir() else [location]:
        try:
            tree = ast.parse(file.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue  # the import says it better
        for node in _run_at_import(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("logging.basicConfig", "basicConfig"):
                yield f"{file} line {node.lineno}"


def _run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _LATER) and not _is_main_guard(child):
            yield child
            yield from _run_at_import(child)


def _is_main_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)
