"""Explore-Go on Sample Factory: explore first, then go, and generalise further."""

__version__ = "0.1.0"
