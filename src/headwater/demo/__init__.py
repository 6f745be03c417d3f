"""The demo behind `make demo`: a job is killed twice while it runs, and its totals are still exact."""
