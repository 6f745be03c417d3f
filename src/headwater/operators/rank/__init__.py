"""Steps that choose among the rows of a key: the first, or those that come first in an order."""
