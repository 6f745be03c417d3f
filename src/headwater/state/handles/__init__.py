"""State as functions reach it: values, lists, maps, and what belongs to no key."""
