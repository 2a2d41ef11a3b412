"""Where the packages of another Python environment are, found without starting its interpreter."""

from __future__ import annotations

from pathlib import Path

__all__ = ["package_folders"]


def package_folders(python: Path) -> list[str]:
    """Return the folders that an environment's interpreter would import packages from.

    Args:
        python: the folder of a virtual environment, or the interpreter in it.
    Returns:
        Its site-packages and the folders that `.pth` files add; empty where `python` is in no virtual environment.
    """
    prefix = python if python.is_dir() else python.parent.parent
    if not (prefix / "pyvenv.cfg").is_file():
        return []
    sites = [*sorted(prefix.glob("lib/python*/site-packages")), *prefix.glob("Lib/site-packages")]
    return [str(folder) for site in sites for folder in (site, *_added(site))]


def _added(site: Path) -> list[Path]:
    lines = [
        line.strip() for file in sorted(site.glob("*.pth")) for line in file.read_text(errors="replace").splitlines()
    ]
    # Lines that begin with `import` are code; what only they make importable is not found from outside.
    folders = [site / line for line in lines if line and not line.startswith(("#", "import ", "import\t"))]
    return [folder for folder in folders if folder.is_dir()]
