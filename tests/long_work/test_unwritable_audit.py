"""Where the audit cannot be written, only calls of low danger run."""

from __future__ import annotations

import shutil
from typing import Any

import pytest


@pytest.mark.parametrize("runtime", ["inline"], indirect=True)
async def test_without_an_audit_medium_and_high_calls_are_refused_and_low_ones_run(site: Any) -> None:
    async def approver(request: Any) -> bool:
        del request
        return True

    async with site.open(approver=approver, overrides={"danger.high": "allow"}) as host:
        await host.call("who")
        shutil.rmtree(site.state / "audit")
        (site.state / "audit").write_text("in its place")
        low, high, long_low, long_high = [
            await host.call(name, arguments)
            for name, arguments in (
                ("who", {}),
                ("erase", {"what": "disk"}),
                ("mark", {"name": "a", "seconds": 0}),
                ("purge", {}),
            )
        ]

    assert low.success
    assert long_low.success
    for refused in (high, long_high):
        assert refused.error_kind == "audit_unavailable"
        assert refused.retryable
        assert "of danger high does not run without a record of it" in refused.error
    assert site.notes == ["begin a", "end a"]
