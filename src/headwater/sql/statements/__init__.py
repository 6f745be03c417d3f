"""What statements do: tables and views come and go, settings are set, queries are put into the job."""
