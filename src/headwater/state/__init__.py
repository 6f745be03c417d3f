"""Keyed state: working copies in memory, and the changelog they are rebuilt from."""
