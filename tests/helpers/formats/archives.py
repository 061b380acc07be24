"""Archives as other tools read them: the files in them, in a folder."""

import tarfile


def unpack(path, folder):
    """Unpack an archive that we wrote; Python before 3.11.4 has no filters yet."""
    filters = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(path) as archive:
        archive.extractall(folder, **filters)
