"""Checkpoints as users see them: the history of epochs, what is retained, and the way back to an earlier one."""
