"""A real filesystem that hangs, for tests of what the agent reads of the machine. It needs root."""

import ctypes
import os

_LIBC = ctypes.CDLL(None, use_errno=True)
_MNT_DETACH = 2


class HangingFilesystem:
    """A FUSE filesystem mounted on a directory, whose server never answers until the end."""

    def __init__(self, directory):
        self._directory = str(directory).encode()
        self._server = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self._server},rootmode=40000,user_id=0,group_id=0".encode()
        if _LIBC.mount(b"persia-test", self._directory, b"fuse", 0, options) != 0:
            error = ctypes.get_errno()
            os.close(self._server)
            raise OSError(error, f"mount of FUSE: {os.strerror(error)}")

    def end(self):
        """All calls that wait for it fail."""
        os.close(self._server)
        _LIBC.umount2(self._directory, _MNT_DETACH)


def try_fuse(directory):
    try:
        HangingFilesystem(directory).end()
    except OSError as error:
        return str(error)
    return ""
