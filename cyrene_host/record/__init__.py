"""What outlives the host: its database, which hosts are alive, and what plugins keep."""
