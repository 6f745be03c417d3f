"""From relations to nodes of the graph."""
