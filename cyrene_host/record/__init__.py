"""What outlives a call: the audit."""
