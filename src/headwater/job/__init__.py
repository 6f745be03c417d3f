"""A job as its driver sees it: its folder, its checkpoints, its supervision."""
