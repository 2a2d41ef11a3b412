"""What every test may ask for: an outside tool, time on a slow machine, and plugins that do as they are told."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from cyrene_host import Host

with contextlib.suppress(ImportError):  # there only where coverage is measured
    import coverage.inorout

    # At each change of sys.path it takes out of sys.modules what other threads import meanwhile, to undo its own
    # imports of source packages. There are none of those: pyproject.toml names folders.
    vars(coverage.inorout)["sys_modules_saved"] = contextlib.nullcontext

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


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


@pytest.fixture
def until(slow: Callable[[float], float]) -> Callable[..., Any]:
    """Return a function that waits, at most some seconds, until a claim holds."""

    async def wait(is_so: Callable[[], object], limit_s: float = 5) -> None:
        async with asyncio.timeout(slow(limit_s)):
            while not is_so():  # noqa: ASYNC110 - of processes and files nobody tells
                await asyncio.sleep(0.01)

    return wait


OBEDIENT = """
import asyncio
import ctypes
import os
import time
from pathlib import Path

from cyrene_sdk import BasePlugin, PluginMetadata, tool

ORDERS = Path(__file__).parent.parent


def obey(stage):
    with (ORDERS / "log").open("a") as log:
        log.write(f"NAME {stage}\\n")
    order = ORDERS / f"NAME.{stage}"
    what = order.read_text() if order.exists() else ""
    if what == "raise":
        raise OSError(f"no {stage}")
    if what == "exit":
        os._exit(3)
    if what == "hang":
        time.sleep(60)
    if what == "block":
        ctypes.PyDLL(None).sleep(60)
    if what.isdigit():
        time.sleep(int(what) / 1000)


class Obedient(BasePlugin):
    meta = PluginMetadata(name="NAME", version="VERSION", dependencies=NEEDS)

    def init(self, config):
        self.word = config.get("word", "")
        obey("init")

    def start(self, host):
        obey("start")
        with (ORDERS / "log").open("a") as log:
            log.write("NAME is up\\n")

    def stop(self):
        obey("stop")

    def health(self):
        obey("health")

    @tool(read_only=True)
    async def NAME_do(self) -> dict:
        '''Tell who does it.'''
        return {"pid": os.getpid(), "version": "VERSION", "word": self.word}

    @tool(timeout_ms=20000)
    async def NAME_wait(self) -> str:
        '''Wait until it is told to go on.'''
        (ORDERS / "NAME.waits").touch()
        while not (ORDERS / "NAME.go").exists():
            await asyncio.sleep(0.01)
        return "waited"

    @tool
    async def NAME_exit(self) -> str:
        '''End the process.'''
        os._exit(7)

    @tool(timeout_ms=300)
    async def NAME_hang(self) -> str:
        '''Never let go.'''
        time.sleep(60)
        return "awake"
"""


class Ground:
    """A folder with a plugins.json and plugins that do as they are told, in `init`, `start`, `stop` and `health`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "plugins.json"
        (folder / "plugins").mkdir()

    def plugin(
        self, name: str, *, needs: dict[str, str] | None = None, version: str = "1.0.0", source: str = OBEDIENT
    ) -> None:
        """Write a plugin, `plugins/<name>/<name>.py`, with the tools `<name>_do`, `_wait`, `_exit` and `_hang`."""
        folder = self.folder / "plugins" / name
        folder.mkdir(exist_ok=True)
        text = source.replace("NAME", name).replace("VERSION", version).replace("NEEDS", repr(needs or {}))
        (folder / f"{name}.py").write_text(text, encoding="utf-8")

    def list(self, *entries: str | dict[str, Any]) -> None:
        """Write plugins.json; a str is an entry that is nothing but a name."""
        named = [{"name": entry} if isinstance(entry, str) else entry for entry in entries]
        listed = [{"limits": {"kill_grace_s": 0.2}, **entry} for entry in named]
        self.file.write_text(json.dumps(listed), encoding="utf-8")
        self.file.chmod(0o600)

    def order(self, name: str, stage: str, what: str = "") -> None:
        """Have a stage of a plugin raise, exit, hang, block (in C, with the interpreter) or take milliseconds."""
        (self.folder / "plugins" / f"{name}.{stage}").write_text(what)

    def has(self, name: str, sign: str) -> bool:
        """Whether a plugin has left a sign, such as `waits`."""
        return (self.folder / "plugins" / f"{name}.{sign}").exists()

    @property
    def log(self) -> list[str]:
        """What the plugins went through, in order."""
        log = self.folder / "plugins" / "log"
        return log.read_text().splitlines() if log.exists() else []

    @property
    def settings(self) -> dict[str, Any]:
        """The overrides that every host here has."""
        return {"host.state_dir": str(self.folder / "state")}

    def open(self, *, overrides: dict[str, Any] | None = None, **more: Any) -> Any:
        """Return `Host.open` on this folder."""
        return Host.open(self.file, overrides={**self.settings, **(overrides or {})}, **more)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """An empty folder for plugins that do as they are told."""
    return Ground(tmp_path)
