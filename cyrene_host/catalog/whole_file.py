"""Files of the state directory and of packages, written as a whole or not at all."""

from __future__ import annotations

from pathlib import Path
from secrets import token_hex

__all__ = ["replace_whole"]


def replace_whole(file: Path, text: str) -> None:
    """Put a text in the place of a file's, so that no reader sees half of it.

    Raises:
        OSError: the folder is not there, or cannot be written.
    """
    temporary = file.with_name(f".{token_hex(8)}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8", newline="\n")
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
