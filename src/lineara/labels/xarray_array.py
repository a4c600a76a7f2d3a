"""xarray's classes with traced data; imported only when one is differentiated."""

from typing import Any

import xarray as xr

from lineara.python.duck_array import opened


class TracedDataArray(xr.DataArray):
    """A DataArray whose `.values`, `.to_numpy()` and `.item()` return traced values."""

    __slots__ = ()

    @property
    def values(self) -> Any:  # type: ignore[override]
        """The traced array."""
        return opened(self.data)

    def to_numpy(self) -> Any:
        """The traced array."""
        return opened(self.data)

    def item(self, *args: Any) -> Any:
        """One element, traced."""
        return opened(self.data).item(*args)


class TracedDataset(xr.Dataset):
    """A Dataset whose variables are TracedDataArrays."""

    __slots__ = ()

    def _construct_dataarray(self, name: object) -> Any:
        array = super()._construct_dataarray(name)
        parts = {"name": array.name, "indexes": array._indexes, "fastpath": True}
        return TracedDataArray(array.variable, array._coords, **parts)


CLASSES: dict[type, type] = {xr.DataArray: TracedDataArray, xr.Dataset: TracedDataset}
