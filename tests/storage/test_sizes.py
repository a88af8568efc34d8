import pytest

from gamlp.errors import SettingsError
from gamlp.storage.sizes import format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"), [("8GiB", 8 * 2**30), ("512 MB", 512 * 10**6), ("100", 100), ("1.5kib", 1536), ("8G", 8 * 10**9)]
)
def test_sizes_are_read(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "much", "8,5GiB", "-8GiB", "0", "8 GiB or so", "8GiBs", "nan"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(SettingsError, match="no amount of memory"):
        parse_size(text)


def test_sizes_are_written():
    assert [format_size(size) for size in (100, 1536, 3.5 * 2**30)] == ["100 B", "1.5 KiB", "3.5 GiB"]
