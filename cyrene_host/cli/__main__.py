"""`python -m cyrene_host.cli` is `cyrene`."""

from cyrene_host.cli.program import main

main()
