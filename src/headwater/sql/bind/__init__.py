"""From trees to relations: names, types and scopes, and what the constructs of a query mean."""
