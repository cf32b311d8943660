"""A submission: its key, its admission, and the list that it waits in."""
