"""Names of files that operating systems leave beside the user's own: a listing and an archive leave them out, and count them."""

from __future__ import annotations

SYSTEM_FOLDERS = ("__MACOSX",)
SYSTEM_NAMES = (".DS_Store", "Thumbs.db", "thumbs.db", "ehthumbs.db", "desktop.ini", "Desktop.ini")
APPLE_DOUBLE = "._"  # attributes of the file whose name follows


def is_system_file(path: str) -> bool:
    """Whether a path inside an archive, whichever way its slashes lean, names such a file."""
    *folders, name = path.replace("\\", "/").split("/")
    return name in SYSTEM_NAMES or name.startswith(APPLE_DOUBLE) or any(folder in SYSTEM_FOLDERS for folder in folders)
