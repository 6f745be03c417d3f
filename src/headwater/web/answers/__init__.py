"""What the API answers: a file for each page of the dashboard, each from a job's folder alone."""
