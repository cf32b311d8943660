"""The error model of a queue and of a fusion, as kernels of other dialects are told of it."""

import numpy as np
import pytest

import fusionq as fq
from fusionq.frontend.callees import callee_of
from fusionq.frontend.kernel import KernelFunction


def one(item, out):
    out[item.get_id(0)] = 1


class Noting(KernelFunction):
    """A kernel that notes the error models under which it is submitted."""

    def __init__(self):
        super().__init__(callee_of(one))
        self.models = []

    def under(self, error_model):
        self.models.append(error_model)
        return self


@pytest.mark.parametrize("model", ["python", "numpy"])
def test_a_fusion_has_its_own_for_its_block(model):
    kernel, other = Noting(), {"python": "numpy", "numpy": "python"}[model]
    with fq.FusionQueue("reference", error_model=model) as queue:
        out = fq.Buffer(4, np.float32)
        queue.submit(kernel, 4, out)
        with fq.fusion(queue):
            queue.submit(kernel, 4, out)
        with fq.fusion(queue, error_model=other):
            queue.submit(kernel, 4, out)
            queue.submit(kernel, 4, out)
        queue.submit(kernel, 4, out)
        assert kernel.models == [model, other]
        with pytest.raises(ZeroDivisionError), fq.fusion(queue, error_model=other):
            raise ZeroDivisionError
        queue.submit(kernel, 8, fq.Buffer(8, np.float32))
        assert kernel.models == [model, other, model]
        np.testing.assert_array_equal(out.numpy(), 1)


def test_what_is_no_error_model():
    with fq.FusionQueue("reference") as queue:
        with pytest.raises(fq.ArgumentError, match="error_model='c' is none"):
            fq.fusion(queue, error_model="c")
        with pytest.raises(fq.ArgumentError, match="error_model"):
            queue.start_fusion()
            queue.complete_fusion(error_model="numpy")
