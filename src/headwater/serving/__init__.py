"""What every server of Headwater has: a token, limits, refusals in JSON, and a thread that it runs in."""
