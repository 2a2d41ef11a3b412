"""What every test may ask for: an outside tool, and time on a slow machine."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable

import pytest


def pytest_configure() -> None:
    """Hear Ctrl-C, and let what tests start hear it: a shell without job control starts background jobs deaf to it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run where the host runs."""
    return "asyncio"


@pytest.fixture(scope="session")
def needs() -> Callable[[str], str]:
    """Return a function that gives the path of a program, or skips the test where it is not installed.

    A program that `CYRENE_TEST_REQUIRE` names (separated by spaces or commas) must be there: the test fails without it.
    """
    required = os.environ.get("CYRENE_TEST_REQUIRE", "").replace(",", " ").split()

    def path_of(program: str) -> str:
        path = shutil.which(program)
        if path is not None:
            return path
        if program in required:
            pytest.fail(f"'{program}' is not installed, and CYRENE_TEST_REQUIRE names it", pytrace=False)
        pytest.skip(f"'{program}' is not installed")

    return path_of


@pytest.fixture(scope="session")
def slow() -> Callable[[float], float]:
    """Return a function that stretches a time limit by `CYRENE_SLOW` (default 1), for slow and busy machines."""
    factor = float(os.environ.get("CYRENE_SLOW", "1"))
    return lambda seconds: seconds * factor
