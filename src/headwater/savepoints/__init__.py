"""Savepoints: an epoch's state as typed tables, how it is written, and how a program goes on from it."""
