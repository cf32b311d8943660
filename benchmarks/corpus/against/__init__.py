"""The corpus against PyTorch: its programs as a user of PyTorch writes them, on the same GPU."""
