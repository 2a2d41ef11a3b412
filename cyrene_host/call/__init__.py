"""One tool call, from its name to its checked result."""
