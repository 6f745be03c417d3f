"""The job graph: nodes, edges, and the graph as text."""
