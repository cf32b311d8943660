"""The benchmarks behind ``fusionq bench``: cases, baselines and the runner."""
