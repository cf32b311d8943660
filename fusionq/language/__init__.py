"""What a kernel may use; everything here also runs as plain Python."""

from fusionq.language.item import Group, Item, NdItem
from fusionq.language.ranges import NdRange, Range

__all__ = ["Group", "Item", "NdItem", "NdRange", "Range"]
