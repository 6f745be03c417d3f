"""From text to statements and trees, with the place of everything in the text."""
