"""The host: the one composition root that every surface talks to."""
