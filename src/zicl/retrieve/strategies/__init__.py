"""Retrieval strategies: one file each."""
