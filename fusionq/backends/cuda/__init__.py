"""NVIDIA GPUs through NVRTC and the CUDA driver."""
