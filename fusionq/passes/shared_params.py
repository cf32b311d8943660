"""Parameters of a kernel that is made of several."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace

from fusionq.base.identity_cache import cached_by_identity
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.nodes import KernelParam
from fusionq.passes.sources import ParamSource


@dataclass
class SharedParams:
    """The parameters so far, and their sources; those that are alike but for their names, of
    sources with equal ``identity``, are one."""

    identity: Callable[[ParamSource], Hashable]
    names: FreshNames
    params: list[KernelParam] = field(default_factory=list)
    sources: dict[str, ParamSource] = field(default_factory=dict)
    _known: dict[Hashable, str] = field(default_factory=dict)

    def of(self, param: KernelParam, source: ParamSource) -> str:
        """The name of the parameter ``param`` with the value of ``source``."""
        key = self.identity(source), _unnamed(param)
        if key not in self._known:
            self._known[key] = self.own(param, source)
        return self._known[key]

    def own(self, param: KernelParam, source: ParamSource) -> str:
        """The name of another parameter, which is shared with none."""
        name = self.names.fresh(param.name)
        self.params.append(replace(param, name=name))
        self.sources[name] = source
        return name


@cached_by_identity
def _unnamed(param: KernelParam) -> KernelParam:
    return replace(param, name="")
