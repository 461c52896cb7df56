"""A local file that is kept open, so that what is to be appended can be appended at once.

Only a regular file on a file system of this machine's own is one: a write to it waits for nobody
else. Where the system does not say whether it is (Linux does), none is. A file that was moved away
or replaced is let go, and a forked child has none of its parent's.
"""

from __future__ import annotations

import os
import threading
import weakref
from os import stat
from pathlib import Path
from stat import S_ISREG

from adjudge._record.filelock import AT_ONCE, FREE, flock
from adjudge._record.recorder import Offer

__all__ = ["NOTHING_KNOWN", "KeptFile", "Known", "append", "is_local", "write_all"]

Known = tuple[int, bytes, str]
"""The size of a file, the bytes at its end, and the hash in them."""
NOTHING_KNOWN: Known = (-1, b"", "")

_FLAGS = (
    os.O_RDWR
    | os.O_APPEND
    | os.O_CREAT
    | getattr(os, "O_CLOEXEC", 0)
    # So that a pipe at the path is seen, and not waited for.
    | getattr(os, "O_NONBLOCK", 0)
)
_LOCAL_FILE_SYSTEMS = frozenset(
    {
        *("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "bcachefs", "f2fs", "jfs", "reiserfs"),
        *("tmpfs", "ramfs", "overlay", "vfat", "exfat"),
    }
)


def is_local(fd: int) -> bool:
    """Whether an open file is a regular one on a file system of this machine's own."""
    if not S_ISREG(os.fstat(fd).st_mode):
        return False
    try:
        about = Path(f"/proc/self/fdinfo/{fd}").read_text("ascii")
        mounts = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape")
    except OSError:
        return False
    mount = next((line.split()[1] for line in about.splitlines() if line[:7] == "mnt_id:"), None)
    for line in mounts.splitlines():
        if line.split(" ", 1)[0] == mount:
            return line.rpartition(" - ")[2].split(" ", 1)[0] in _LOCAL_FILE_SYSTEMS
    return False


class KeptFile:
    """What is at a path, kept open. Use it while holding `lock`, which nobody holds for long."""

    __slots__ = ("__weakref__", "_device", "_foreign", "_inode", "_path", "fd", "known", "lock")

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.lock = threading.Lock()
        self.fd = -1
        self.known = NOTHING_KNOWN
        """What whoever appends knows of the file; nothing, once it is let go."""
        self._path = os.fspath(path)
        self._device = self._inode = -1
        # Once it turned out to be none, so that no caller opens again what may hang.
        self._foreign = False
        if hasattr(os, "register_at_fork"):
            # A child that has the parent's open file has its lock, too, and whoever else wants it
            # would wait for the child when the parent is killed.
            kept = weakref.ref(self)
            os.register_at_fork(after_in_child=lambda: _forget(kept()))

    def __del__(self) -> None:
        self.close()

    def ready(self, *, lock: bool) -> os.stat_result | None:
        """Open what is at the path, with `lock` also lock it, and give its status.

        It is created where missing. None says that this would take a wait, or that it cannot be.
        """
        for _ in range(2):
            if self.fd < 0 and not self._open():
                return None
            try:
                if lock:
                    flock(self.fd, AT_ONCE)
            except OSError:
                return None
            try:
                status = stat(self._path)  # noqa: PTH116 - for each event, and quicker
            except OSError:
                self.close()
                continue
            if status.st_ino == self._inode and status.st_dev == self._device:
                return status
            # It was moved away: whoever has it now must not find it locked.
            self.close()
        return None

    def unlock(self) -> None:
        """Let others have the file."""
        flock(self.fd, FREE)

    def close(self) -> None:
        """Let go of the file, and so of its lock."""
        fd, self.fd = self.fd, -1
        self.known = NOTHING_KNOWN
        if fd >= 0:
            os.close(fd)

    def _open(self) -> bool:
        if self._foreign:
            return False
        try:
            # Whoever reads a pipe would take our opening and closing of it for its end.
            there = Path(self._path)
            self._foreign = there.exists() and not there.is_file()
            if self._foreign:
                return False
            fd = os.open(self._path, _FLAGS, 0o666)
        except OSError:
            return False
        try:
            self._foreign = not is_local(fd)
            if not self._foreign:
                status = os.fstat(fd)
                self._device, self._inode = status.st_dev, status.st_ino
                self.fd = fd
        finally:
            # Also where an interrupt came in between.
            if self.fd != fd:
                os.close(fd)
        return self.fd == fd


def append(fd: int, data: bytes, size: int, offer: Offer) -> None:
    """Write the bytes of an offer to the end of a file, and put down in the offer that they are.

    `size` is the file's as it was before.
    """
    try:
        write_all(fd, data)
    except BaseException:
        # An interrupt may have come after the bytes.
        offer.taken = os.fstat(fd).st_size >= size + len(data)
        raise
    offer.taken = True


def write_all(fd: int, data: bytes) -> None:
    """Write all of it: at once in nearly all cases; a full disk leaves a part, and raises."""
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, data[written:])


def _forget(kept: KeptFile | None) -> None:
    if kept is not None:
        kept.close()
        kept.lock = threading.Lock()
