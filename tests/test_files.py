"""Files are written whole or not at all, and a .npy header is not believed."""

import hashlib
import io
import os
import zipfile

import numpy as np
import pytest

from gamlp.errors import FormatError, MissingFileError, StorageError
from gamlp.storage import files
from gamlp.storage.array_reader import ArrayReader
from gamlp.storage.checksums import file_checksum, write_hashed
from gamlp.storage.files import digest, read_array, replacing, write_array, write_json


def header(shape: str, *, kind: str = "<f4") -> bytes:
    """A .npy file of format 1.0 that declares `shape` and holds no values."""
    words = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}}}".encode()
    words += b" " * (-(10 + len(words) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(words).to_bytes(2, "little") + words


@pytest.mark.parametrize("memory_map", [False, True])
def test_what_is_written_is_read(tmp_path, memory_map):
    for array in (np.arange(6.0).reshape(2, 3), np.zeros((0, 4), np.float32), np.array(["a", "bc"])):
        write_array(tmp_path / "a.npy", array)
        read = read_array(tmp_path / "a.npy", memory_map=memory_map)
        assert read.dtype == array.dtype
        assert read.tolist() == array.tolist()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (header("(1000000000000, 1000000)"), "declares"),
        (header("(-1, 4)"), "declares the shape"),
        (header("(1,)", kind="|O") + b"cos\nsystem\n.", "pickled"),
        (b"\x93NUMPY\x01\x00\xff\xff{'descr'", "damaged"),
        (b"", "magic"),
        (b"not an array", "magic"),
    ],
    ids=["gigantic", "negative", "pickled", "damaged", "empty", "text"],
)
@pytest.mark.parametrize("memory_map", [False, True])
def test_a_file_that_is_no_array_is_refused_by_name(tmp_path, content, words, memory_map):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(FormatError, match=words) as raised:
        read_array(tmp_path / "a.npy", memory_map=memory_map)
    assert str(tmp_path / "a.npy") in str(raised.value)


def test_an_empty_range_of_a_file_by_columns_is_empty(tmp_path):
    np.save(tmp_path / "a.npy", np.asfortranarray(np.ones((5, 3), np.float32)))
    reader = ArrayReader(read_array(tmp_path / "a.npy", memory_map=True))
    assert reader.block(2, 2, slice(0, 3)).shape == (0, 3)
    assert reader.block(0, 5, slice(1, 1)).shape == (5, 0)
    assert reader.block(1, 3, slice(1, 3)).tolist() == [[1, 1], [1, 1]]


def test_a_zip_named_npy_is_refused(tmp_path):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("x.npy", b"1")
    (tmp_path / "a.npy").write_bytes(held.getvalue()[:-30])
    with pytest.raises(FormatError):
        read_array(tmp_path / "a.npy")


def test_every_cut_of_an_array_is_refused(tmp_path):
    write_array(tmp_path / "a.npy", np.arange(10))
    whole = (tmp_path / "a.npy").read_bytes()
    for size in (1, 7, 9, 60, len(whole) - 1):
        (tmp_path / "a.npy").write_bytes(whole[:size])
        with pytest.raises(FormatError):
            read_array(tmp_path / "a.npy")


def test_an_array_that_is_not_there(tmp_path):
    with pytest.raises(MissingFileError):
        read_array(tmp_path / "a.npy")


def test_a_block_that_fails_leaves_the_old_content_and_nothing_else(tmp_path):
    write_json(tmp_path / "a.json", {"old": 1})
    before = (tmp_path / "a.json").read_bytes()

    def fail() -> None:
        with replacing(tmp_path / "a.json") as file:
            file.write(b"half")
            raise RuntimeError("the power is gone")

    with pytest.raises(RuntimeError):
        fail()
    assert (tmp_path / "a.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_place_below_a_file_is_a_storage_error(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="could not be written"):
        write_json(tmp_path / "file" / "a.json", {})


def test_two_buffers_in_turn_are_hashed_and_written_as_they_were(tmp_path):
    """Large parts, so that hashing one takes longer than filling the next."""
    buffers = [bytearray(2**22) for _ in range(2)]

    def parts():
        for number in range(12):
            part = buffers[number % 2]
            part[:] = bytes([number]) * len(part)
            yield memoryview(part)

    found = write_hashed(tmp_path / "x", parts())
    expected = b"".join(bytes([number]) * 2**22 for number in range(12))
    assert (tmp_path / "x").read_bytes() == expected
    assert found == file_checksum(tmp_path / "x") == hashlib.blake2b(expected, digest_size=16).hexdigest()
    assert write_hashed(tmp_path / "empty", iter([])) == file_checksum(tmp_path / "empty")


def test_the_key_of_a_file_is_that_of_its_values_however_they_lie(tmp_path):
    values = np.random.default_rng(0).normal(size=(70_000, 70)).astype(np.float32)  # more than one piece
    np.save(tmp_path / "rows.npy", values)
    np.save(tmp_path / "columns.npy", np.asfortranarray(values))
    mapped = [read_array(tmp_path / f"{name}.npy", memory_map=True) for name in ("rows", "columns")]
    assert not mapped[1].flags.c_contiguous
    assert {digest(array) for array in (values, np.asfortranarray(values), *mapped)} == {digest(values)}
    assert {digest("key", array) for array in (values, *mapped)} == {digest("key", values)}
    assert digest("key", values) != digest("key", values + 1)
    assert digest(values, b"x") != digest(values, "y") != digest("y", values)


def test_a_file_that_was_read_once_is_not_read_for_its_key_until_it_changes(tmp_path, monkeypatch):
    path = tmp_path / "x.npy"
    np.save(path, np.zeros(100))
    mapped = read_array(path, memory_map=True)
    date = path.stat().st_mtime_ns
    alone, key = digest(mapped), digest("key", np.zeros(100))
    with monkeypatch.context() as patch:
        patch.setattr(files, "_by_rows", lambda array: pytest.fail("it was read again"))
        assert digest("key", mapped) == key
    np.save(path, np.ones(100))
    os.utime(path, ns=(date + 1, date + 1))
    assert digest("key", mapped) == digest("key", np.ones(100))
    np.save(path, np.zeros(100))
    os.utime(path, ns=(date, date))
    digest(mapped)
    np.save(path, np.ones(100))
    os.utime(path, ns=(date, date))  # a checksum does not believe a date
    assert digest(mapped) == digest(np.ones(100)) != alone
