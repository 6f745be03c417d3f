"""The command line `headwater`: start, watch, understand, stop, upgrade and repair jobs."""
