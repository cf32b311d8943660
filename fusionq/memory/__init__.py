"""Buffers: allocation, views, arrays of other libraries, and which queues use which memory."""
