"""`cyrene new`: writes a plugin's folder that works at once."""

from __future__ import annotations

import json
import os
from pathlib import Path

from pydantic import ValidationError

from cyrene_host.catalog.entries import PluginEntry
from cyrene_host.catalog.tables import problems
from cyrene_host.cli.options import Choices, WrongUseError
from cyrene_host.cli.template import files_of

__all__ = ["make_plugin"]


def make_plugin(choices: Choices, name: str, parent: Path) -> int:
    """Write the plugin `name` into a folder of that name below `parent`, and say what to type next.

    Raises:
        WrongUseError: the name is no entry's name, or the folder is there and not empty.
    """
    _check(name)
    folder = parent / name
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        mend = "take another name, or another folder with --dir"
        raise WrongUseError(f"'{folder}' is there already", where="command line", mend=mend)
    written = []
    try:
        for place, text in files_of(name).items():
            file = folder / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            written.append(str(file))
    except OSError as error:
        reason = error.strerror or str(error)
        raise WrongUseError(
            f"'{folder}' cannot be written: {reason}", where="command line", mend="give a folder of yours with --dir"
        ) from error
    entry = {"name": name} if parent == Path("plugins") else {"name": name, "path": str(folder)}
    if choices.as_json:
        choices.screen.json({"plugin": name, "folder": str(folder), "files": written, "entry": entry})
    else:
        listing = Path(choices.plugins or os.environ.get("CYRENE_PLUGINS") or "plugins.json")
        choices.screen.answer("\n".join([*written, "", _next(name, folder, entry, is_first=not listing.exists())]))
    return 0


def _check(name: str) -> None:
    try:
        PluginEntry.model_validate({"name": name})
    except ValidationError as error:
        problem = problems(error, PluginEntry)[0]
        raise WrongUseError(problem.what, where="command line", mend=problem.mend) from error


def _next(name: str, folder: Path, entry: dict[str, str], *, is_first: bool) -> str:
    spelled = json.dumps(entry, ensure_ascii=False)
    return "\n".join(
        [
            "What to do next:",
            f"  write a plugins.json:  [{spelled}]" if is_first else f"  add to the list of plugins.json:  {spelled}",
            f"  cyrene check {folder}",
            f"  cyrene why {name}",
            f"  python -m pytest {folder}",
        ]
    )
