"""What is configured and installed: plugins.json, cyrene.toml, manifests, names and schemas."""
