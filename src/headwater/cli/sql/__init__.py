"""The terminal client for streaming SQL."""
