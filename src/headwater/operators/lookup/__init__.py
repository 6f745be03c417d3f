"""Rows together with what a table outside the job holds for their keys."""
