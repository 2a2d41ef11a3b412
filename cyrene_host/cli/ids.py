"""What a person types for an id: all of it, or how it begins."""

from __future__ import annotations

from collections.abc import Sequence

from cyrene_host.catalog.faults import nearest
from cyrene_host.cli.options import WrongUseError

__all__ = ["full_id"]

MOST_NAMED = 5


def full_id(word: str, known: Sequence[str], noun: str) -> str:
    """Return the one known id that a word means.

    Args:
        known: ids such as `exe_0123456789abcdef`; of the word the part before `_` may be missing.
        noun: what they are ids of.
    Raises:
        WrongUseError: it means none, or several.
    """
    if word in known:
        return word
    found = [one for one in known if word and (one.startswith(word) or one.partition("_")[2].startswith(word))]
    if len(found) == 1:
        return found[0]
    if found:
        shown = ", ".join(found[:MOST_NAMED]) + (" and more" if len(found) > MOST_NAMED else "")
        what, mend = f"'{word[:80]}' may be {len(found)} {noun}s: {shown}", "write more of it"
    else:
        near = nearest(word, known)
        what = f"there is no {noun} '{word[:80]}'"
        mend = f"did you mean '{near}'?" if near else f"`cyrene {noun}s list` shows those that there are"
    raise WrongUseError(what, where=f"{noun} id", mend=mend)
