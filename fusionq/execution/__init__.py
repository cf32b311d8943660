"""From a list to prepared launches: compile, bind, prepare, autotune."""
