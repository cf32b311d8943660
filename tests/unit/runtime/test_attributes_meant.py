"""Attributes of other libraries' arrays and queues: the error says what to write."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.attributes_meant import OF_BUFFERS, OF_QUEUES


@pytest.mark.parametrize("name", OF_BUFFERS)
def test_buffers(name):
    buffer = fq.Buffer(np.zeros((2, 3)))
    with pytest.raises(AttributeError, match=f"'Buffer' object has no attribute '{name}': ."):
        getattr(buffer, name)
    assert not hasattr(buffer, name)


@pytest.mark.parametrize("name", OF_QUEUES)
def test_queues(name):
    queue = fq.FusionQueue("reference")
    with pytest.raises(AttributeError, match=f"'FusionQueue' object has no attribute '{name}': ."):
        getattr(queue, name)


def test_what_is_named_is_there():
    """Names with parentheses in the texts are methods of ours."""
    import re

    for owner, texts in ((fq.Buffer, OF_BUFFERS), (fq.FusionQueue, OF_QUEUES)):
        for text in texts.values():
            for name in re.findall(r"(?<![.\w])(\w+)\(", text):
                assert hasattr(owner, name) or hasattr(fq, name), name


def test_other_names_have_the_usual_error():
    buffer = fq.Buffer(np.zeros(3))
    with pytest.raises(AttributeError, match=r"^'Buffer' object has no attribute 'colour'$"):
        _ = buffer.colour
    with pytest.raises(AttributeError, match="has no attribute '__colour__'"):
        _ = buffer.__colour__


def test_what_a_property_says_stays():
    buffer = fq.Buffer(3, "bfloat16")
    with pytest.raises(AttributeError, match="dpctl's arrays have no bfloat16"):
        _ = buffer.__sycl_usm_array_interface__
