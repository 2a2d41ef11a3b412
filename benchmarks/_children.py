"""What the peers run in a process of their own: `python _children.py echo|lines|lines-uvloop`, and `greet`."""

from __future__ import annotations

import os
import sys

__all__ = ["greet"]


def greet(name: str, n: int) -> str:
    """Greet somebody n times: what every row of the isolated calls does."""
    return f"hi {name} {n}"


def _echo() -> None:
    while request := os.read(0, 65_536):
        os.write(1, request)


async def _lines() -> None:
    import asyncio
    import json

    loop = asyncio.get_running_loop()
    requests = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(requests), sys.stdin)
    answers, _ = await loop.connect_write_pipe(asyncio.Protocol, sys.stdout)
    while line := await requests.readline():
        request = json.loads(line)
        answer = {"id": request["id"], "result": greet(**request["args"])}
        answers.write(json.dumps(answer).encode() + b"\n")


def _main(mode: str) -> None:
    if mode == "echo":
        _echo()
        return
    import asyncio

    if mode == "lines":
        asyncio.run(_lines())
    else:
        import uvloop

        uvloop.run(_lines())


if __name__ == "__main__":
    _main(sys.argv[1])
