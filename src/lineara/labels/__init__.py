"""Arrays with labels: pandas and xarray."""
