"""What can be done with a stream, by family: each is a part of the handle that users hold."""
