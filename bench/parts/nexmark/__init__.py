"""Nexmark: a benchmark of an auction site's events, with queries in Flink SQL."""
