"""Files of sound and motion: their numbers, and what is refused."""

import wave

import numpy as np
import pytest

from nnef_hw.errors import UsageError
from nnef_hw.samples.recordings import read_recording

ENDS = np.array([[-32768, 32767, 0], [1, -1, 12345]])


def write_wav(path, samples, *, rate=100, width=2):
    samples = np.asarray(samples)
    with wave.open(str(path), "wb") as file:
        file.setparams((samples.shape[1], width, rate, 0, "NONE", ""))
        file.writeframes(samples.astype(f"<i{width}").tobytes())
    return path


def read(path, channels=3, rate=100):
    return read_recording(path, rate=rate, channels=channels, sensor="sensor of motion")


def text_file(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_text(text)
    return path


def test_all_files_have_the_same_numbers(tmp_path):
    write_wav(tmp_path / "a.wav", ENDS)
    np.save(tmp_path / "a.npy", ENDS.astype(np.int16))
    np.savez(tmp_path / "a.npz", motion=ENDS)
    np.save(tmp_path / "b.npy", (ENDS / 32768).astype(np.float32))
    rows = [",".join(map(str, row)) for row in ENDS.tolist()]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    (tmp_path / "b.CSV").write_text("\ufeffx, y,z\r\n" + "\r\n".join(rows) + "\r\n\r\n")
    np.savetxt(tmp_path / "c.csv", ENDS / 32768, delimiter=",", header="x,y,z")
    for name in ("a.wav", "a.npy", "a.npz", "b.npy", "a.csv", "b.CSV", "c.csv"):
        found = read(tmp_path / name)
        assert found.tolist() == ENDS.tolist(), name
        assert found.dtype == np.int64


def test_the_full_scale_is_the_greatest_number(tmp_path):
    found = read(text_file(tmp_path, "1.0,-1,0.5\n"))
    assert found.tolist() == [[32767, -32768, 16384]]


def test_the_first_channel_of_a_sound_is_heard(tmp_path):
    assert read(write_wav(tmp_path / "a.wav", ENDS), channels=1).tolist() == [[-32768], [1]]
    np.save(tmp_path / "a.npy", ENDS[:, 0])
    assert read(tmp_path / "a.npy", channels=1).tolist() == [[-32768], [1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "1,2\n3,4\n",
            "has 2 channels; the build's sensor of motion gives 3; keep 3 columns",
        ),
        ("0,1,2,3\n", "has 4 channels; .* keep 3 columns, without times"),
        ("x,y,z\n1,2,3\n1,2\n", r"a\.csv:3 has 2 columns, and the first row has 3; give rows"),
        ("1,2,3\n1,2,three\n", r"a\.csv:2: 'three' in column 3 is no number; give rows"),
        ("1,2,3\n1,2,nan\n", r"a\.csv:2: 'nan' in column 3 is no number"),
        ("1;2;3\n", r"a\.csv has no rows of numbers; give rows of as many numbers each"),
        ("", r"a\.csv has no rows of numbers"),
        ("0,0,1\n-1,0,0\n", r"has only -1, 0 and 1, .* 0\.000031 of .* real numbers: 1\.0"),
        ("0,0,9.81\n", "9.81 for sample 0, channel 2; .* shares of its full scale, are within -1"),
        (
            "0,32768,1\n",
            "32768 for sample 0, channel 1; .* whole numbers are within -32768 and",
        ),
        ("0,1,99999999999999999999999\n", "1e.23 for sample 0, channel 2"),
    ],
)
def test_other_tables_are_refused(tmp_path, text, message):
    with pytest.raises(UsageError, match=message):
        read(text_file(tmp_path, text))


def test_other_arrays_are_refused(tmp_path):
    path = tmp_path / "a.npy"
    for array, message in (
        (np.zeros((2, 4, 3)), r"has an array of 2x4x3; give one of samples x 3"),
        (np.zeros((2, 3), bool), "has no numbers, but bool"),
        (np.array([[0, np.nan, 0]]), "has nan for sample 0, channel 1"),
        (np.array([[0, "a", 0]]), "has no numbers"),
    ):
        np.save(path, array)
        with pytest.raises(UsageError, match=message):
            read(path)
    np.save(path, np.array([[{}]], object), allow_pickle=True)
    with pytest.raises(UsageError, match="is no file of arrays"):
        read(path)
    path.write_bytes(b"\x93NUMPY")
    with pytest.raises(UsageError, match="is no file of arrays"):
        read(path)
    np.savez(tmp_path / "a.npz", a=ENDS, b=ENDS)
    with pytest.raises(UsageError, match=r"has 2 arrays; save one with numpy\.save"):
        read(tmp_path / "a.npz")


def test_other_sounds_are_refused(tmp_path):
    path = tmp_path / "a.wav"
    for options, what in (({"rate": 50}, "50 samples of 16"), ({"width": 4}, "of 32 bits")):
        write_wav(path, ENDS, **options)
        match = rf"{what}.*gives 100 of 16 bits; convert it: ffmpeg -i .*a\.wav -ar 100 "
        with pytest.raises(UsageError, match=match):
            read(path)
    write_wav(path, ENDS)
    with pytest.raises(UsageError, match=r"has 3 channels; .* gives 6; keep 6 columns"):
        read(path, channels=6)
    path.write_bytes(b"RIFFs")
    with pytest.raises(UsageError, match=r"is no WAV file .* -ac 1 converted\.wav"):
        read(path, channels=1)
    for name in ("b.wav", "b.csv", "b.npy"):
        with pytest.raises(UsageError, match=f"{name}: No such file.*; name a file: --wav FILE"):
            read(tmp_path / name)
