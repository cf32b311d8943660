"""The error tree. Every message says what, where, why and what to do."""

from __future__ import annotations


class FusionqError(Exception):
    """Root of all errors that fusionq raises."""


class KernelLanguageError(FusionqError):
    """A kernel uses Python that is outside the kernel language.

    The message holds ``file:line``, the source line and what to write instead.
    """


class ArgumentError(FusionqError, ValueError):
    """A submission's arguments or range do not fit its kernel."""


class FusionStateError(FusionqError, RuntimeError):
    """A call that the queue's fusion state does not allow."""


class FusionRefused(FusionqError):
    """``require=True`` was given and the list cannot be fused as asked."""


class PromotionConflict(FusionqError, ValueError):
    """Promotion flags contradict each other."""


class DeviceError(FusionqError, RuntimeError):
    """No device, a device that lacks something, or memory it cannot reach."""


class DeviceLost(DeviceError):
    """A queue whose device failed before, which was said then: nothing works on it any more."""


class MegakernelStalled(FusionqError, RuntimeError):
    """A bounded wait inside a megakernel ran out."""


class ArrayDetached(UserWarning):
    """A Buffer's memory has moved to another device; an array of ``Buffer.numpy()`` has not."""


class FusionAborted(UserWarning):
    """Fusion mode ended by itself; the list ran unfused, with the same result."""
