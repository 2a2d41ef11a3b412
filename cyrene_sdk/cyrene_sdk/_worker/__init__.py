"""The runner of plugin code: used by the host's inline runtime and by worker processes."""
