"""The life of plugins: starting, stopping and watching them."""
