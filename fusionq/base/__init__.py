"""What every room may use: errors, configuration, options, source positions, the target."""
