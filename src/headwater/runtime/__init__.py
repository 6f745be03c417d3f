"""Payloads, hosts, outbox and the local engine: everything an epoch needs but Spark."""
