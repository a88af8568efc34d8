"""Generated graphs of any size: planted classes, skewed degrees, communities, features with a faint signal."""
