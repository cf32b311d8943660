"""From Python functions to the typed kernel IR."""

from fusionq.frontend.kernel import KernelFunction, kernel

__all__ = ["KernelFunction", "kernel"]
