"""Files: those of a folder as they come, in, and epochs of rows, out."""
