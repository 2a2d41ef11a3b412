"""A plugin with a tool for each way to harm its process."""
# ruff: noqa: ASYNC240, ASYNC251, PTH123, SIM115 - what is bad style elsewhere is the purpose here

import ctypes
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

from cyrene_sdk import BasePlugin, PluginMetadata, tool


class Harmful(BasePlugin):
    meta = PluginMetadata(name="harmful", version="1.0.0", description="harms its process")

    @tool(read_only=True)
    async def echo(self, text: str) -> str:
        """Answer the text."""
        return text

    @tool
    async def pid(self) -> int:
        """Answer the process id."""
        return os.getpid()

    @tool
    async def exits(self) -> str:
        """End the process."""
        os._exit(7)

    @tool
    async def segfaults(self) -> str:
        """Read what is not there."""
        return str(ctypes.string_at(0))

    @tool(timeout_ms=300)
    async def loops(self) -> str:
        """Loop for ever."""
        while True:
            pass

    @tool(timeout_ms=300)
    async def keeps_the_interpreter(self) -> str:
        """Sleep in C without letting go of the interpreter."""
        ctypes.PyDLL(None).sleep(60)
        return "awake"

    @tool(timeout_ms=300)
    async def ignores_signals_and_hangs(self) -> str:
        """Ignore what can be ignored."""
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(name, signal.SIG_IGN)
        time.sleep(60)
        return "awake"

    @tool
    async def forks_and_returns(self, folder: Path) -> int:
        """Return in both processes."""
        child = os.fork()
        if child == 0:
            (folder / "child").write_text(str(os.getpid()))
        return child

    @tool
    async def forks_and_waits(self, folder: Path) -> int:
        """Wait in both processes, on the event loop."""
        import asyncio

        child = os.fork()
        if child == 0:
            (folder / "child").write_text(str(os.getpid()))
        await asyncio.sleep(0)
        return child

    @tool
    def forks_in_a_thread(self, folder: Path) -> int:
        """Return in both processes, from a thread."""
        child = os.fork()
        if child == 0:
            (folder / "child").write_text(str(os.getpid()))
        return child

    @tool
    def uses_multiprocessing(self) -> int:
        """Do it as a library would."""
        with multiprocessing.get_context("fork").Pool(2) as pool:
            return sum(pool.map(abs, [-1, -2, -3]))

    @tool(timeout_ms=4_000)
    def starts_children_and_hangs(self, folder: Path) -> str:
        """Start children of every sort, and hang."""
        start_children(folder)
        time.sleep(60)
        return "awake"

    @tool(timeout_ms=60_000)
    def starts_children_and_waits(self, folder: Path) -> str:
        """Start children of every sort, and take a long time."""
        start_children(folder)
        time.sleep(60)
        return "awake"

    @tool(timeout_ms=20_000)
    def prints(self, megabytes: int) -> str:
        """Print a lot on both streams."""
        for _ in range(megabytes):
            sys.stdout.write(("o" * 1023 + "\n") * 512)
            sys.stderr.write(("e" * 1023 + "\n") * 512)
        return "printed"

    @tool
    def needs_memory(self, megabytes: int) -> int:
        """Hold memory."""
        return len(bytearray(megabytes * 1024 * 1024))

    @tool
    def opens_files(self) -> int:
        """Open files until it fails."""
        files = []
        while True:
            files.append(open(os.devnull))

    @tool
    def writes_a_large_file(self) -> str:
        """Write a file of 300 MB."""
        with open("large", "wb") as file:
            for _ in range(300):
                file.write(b"x" * 1024 * 1024)
        return "written"

    @tool
    async def environment(self) -> dict[str, str]:
        """Answer all variables."""
        return dict(os.environ)

    @tool
    async def scratch(self) -> str:
        """Answer the folder it works in, after leaving a file there."""
        Path("left.txt").write_text("left")
        return str(Path.cwd())

    @tool
    async def changes_its_process(self) -> str:
        """Change what a process shares."""
        os.chdir("/")
        os.umask(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        return "changed"

    @tool
    async def speaks_out_of_turn(self, text: str) -> str:
        """Write to every socket of the process."""
        for fd in range(3, 64):
            try:
                if stat.S_ISSOCK(os.fstat(fd).st_mode):
                    os.write(fd, text.encode("latin-1"))
            except OSError:
                pass
        return "spoken"


def start_children(folder: Path) -> None:
    """Start a plain child, one in its own group, and a daemon, and write down their pids."""
    script = "import time; time.sleep(300)"
    plain = subprocess.Popen([sys.executable, "-c", script])
    group = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
    daemon = (
        "import subprocess as s, sys; "
        f"print(s.Popen([sys.executable, '-c', {script!r}], start_new_session=True, stdout=s.DEVNULL).pid)"
    )
    pid = subprocess.run([sys.executable, "-c", daemon], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    (folder / "pids").write_text(f"{plain.pid} {group.pid} {pid}")
