"""The processes that the host starts with `python -m cyrene_sdk._worker`: `describe`, `keep` and `serve`."""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys


def main() -> None:
    """Do one of the three, over the descriptor that is given, and end whatever threads a plugin left behind."""
    parser = argparse.ArgumentParser(prog="cyrene_sdk._worker")
    parser.add_argument("command", choices=["describe", "keep", "serve"])
    parser.add_argument("--fd", type=int, required=True, help="descriptor of the answer, of the host, or of the link")
    parser.add_argument("--lifeline", type=int, help="of a worker: the pipe that ends with the keeper")
    arguments = parser.parse_args()
    if arguments.command == "describe":
        _describe(arguments.fd)
    elif arguments.command == "keep":
        from cyrene_sdk._worker.keeper import keep  # a described plugin needs none of it

        keep(socket.socket(fileno=arguments.fd))
    else:
        from cyrene_sdk._worker.process import become_worker  # likewise

        become_worker(arguments.fd, arguments.lifeline)


def _describe(descriptor: int) -> None:
    """Answer the request on standard input with one line."""
    sys.dont_write_bytecode = True  # a look at a plugin leaves nothing beside its files
    from cyrene_sdk._worker.describe import answer  # a keeper needs none of it

    text = json.dumps(answer(json.load(sys.stdin)))
    with os.fdopen(descriptor, "w", encoding="utf-8") as pipe:
        pipe.write(text + "\n")
    sys.stdout.flush()
    os._exit(0)  # a plugin's non-daemon thread or atexit hook must not keep this process


if __name__ == "__main__":
    main()
