from tests.unit.runtime.conftest import _no_disk_cache, queue, sycl_queue, target

__all__ = ["_no_disk_cache", "queue", "sycl_queue", "target"]
