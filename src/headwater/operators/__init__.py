"""What runs inside a level: plain Python over Arrow, without Spark."""
