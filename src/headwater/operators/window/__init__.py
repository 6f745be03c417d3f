"""Windows: what they hold, when they fire, and what comes out."""
