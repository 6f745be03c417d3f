"""What users say of windows: assigners, triggers and their composition, evictors."""
