from tests.unit.runtime.conftest import queue, sycl_queue, target

__all__ = ["queue", "sycl_queue", "target"]
