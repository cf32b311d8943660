"""SYCL devices through dpctl."""
