"""A corpus of programs from the literature, as their authors wrote them, to be judged by."""
