"""Files and other libraries' objects become graphs."""
