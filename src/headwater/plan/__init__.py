"""From the graph to levels."""
