"""Time: event time out of columns, watermarks, timers."""
