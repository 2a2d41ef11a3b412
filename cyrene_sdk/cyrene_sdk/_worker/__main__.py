"""`python -m cyrene_sdk._worker describe --fd N`: request as JSON on stdin, a line of JSON on descriptor N."""

from __future__ import annotations

import argparse
import json
import os
import sys

from cyrene_sdk._worker.describe import answer


def main() -> None:
    """Answer one request and end, whatever threads the plugin left behind."""
    parser = argparse.ArgumentParser(prog="cyrene_sdk._worker")
    parser.add_argument("command", choices=["describe"])
    parser.add_argument("--fd", type=int, required=True, help="descriptor that receives the answer")
    arguments = parser.parse_args()
    text = json.dumps(answer(json.load(sys.stdin)))
    with os.fdopen(arguments.fd, "w", encoding="utf-8") as pipe:
        pipe.write(text + "\n")
    sys.stdout.flush()
    os._exit(0)  # a plugin's non-daemon thread or atexit hook must not keep this process


if __name__ == "__main__":
    main()
