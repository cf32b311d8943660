"""fusionq: user-driven kernel fusion for SYCL queues."""
