"""The protocol of an epoch: offsets, reports, outbox."""
