"""Schemas, rows as Python sees them, rows as Arrow carries them, what the rows of a changelog do, expressions over batches."""
