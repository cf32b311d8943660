"""Profiling as compiler passes: kernels that write down what they do, and what that means."""

from fusionq.profiling.instrumentation import Instrumentation, Scope, around, count, mark
from fusionq.profiling.profiles import Profile, profile
from fusionq.profiling.regions import Region
from fusionq.profiling.timeline import Launch, Timeline

__all__ = [
    "Instrumentation",
    "Launch",
    "Profile",
    "Region",
    "Scope",
    "Timeline",
    "around",
    "count",
    "mark",
    "profile",
]
