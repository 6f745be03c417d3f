"""The fluent handles users build a job with."""
