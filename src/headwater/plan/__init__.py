"""From the graph to a plan: rules that choose, the plan that holds what was chosen, and the plan as text."""
