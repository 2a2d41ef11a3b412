"""`cyrene why`: whether a tool or plugin can be used, for which reason, and what mends it."""

from __future__ import annotations

from collections.abc import Sequence

from cyrene_host.cli.options import Choices
from cyrene_host.cli.reading import read_inventory
from cyrene_host.host.listing import Listing
from cyrene_host.host.why import Why

__all__ = ["show_reasons"]


def show_reasons(choices: Choices, names: Sequence[str]) -> int:
    """Answer for each name; 1 if one of them cannot be used."""
    listing = Listing(read_inventory(choices))
    answers = [listing.why(name) for name in names]
    if choices.as_json:
        choices.screen.json([answer.to_dict() for answer in answers])
    else:
        for answer in answers:
            choices.screen.answer(_told(answer))
    return 0 if all(answer.is_available for answer in answers) else 1


def _told(answer: Why) -> str:
    lines = [f"{answer.name}: {answer.reason.value}", f"  {answer.sentence}"]
    if answer.mend:
        lines.append(f"  mend:  {answer.mend}")
    if answer.command:
        lines.append(f"  type:  {answer.command}")
    if answer.waiting_helps:
        lines.append("  it may pass by itself: try again")
    return "\n".join(lines)
