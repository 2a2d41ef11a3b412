"""Where plugin code runs: one Runtime a plugin, whatever is behind it."""
