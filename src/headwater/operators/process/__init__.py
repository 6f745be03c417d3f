"""Process functions that keep something: per key, per subtask, over two inputs, beside a broadcast stream."""
