"""Working state on local disk."""
