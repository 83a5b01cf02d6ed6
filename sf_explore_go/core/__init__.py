"""Errors, files, seeds, statistics, contexts: plain Python."""
