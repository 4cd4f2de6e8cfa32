"""Records the operations of an agent on the files below a directory, and what it tells others, in one order.

strace shows each system call, also those that libraries make, with all its data. `Recorder.read` turns its output into the
operations of recording.h. A call that changes such a file in a way that the recorder does not know is an error, so that nothing is
left out. The file of a segment is on disk, with its last content, from when the agent opens it first: `segment` gives the content.
"""

import enum
import os
import re
import struct
from pathlib import Path

import snappy

STALE = struct.pack("<Q", 0x7FF0000000000002)


class Do(enum.IntEnum):
    """As in recording.h."""

    MKDIR, LINK, UNLINK, RENAME, WRITE, TRUNCATE, SYNC, SEGMENT, PUT, DELETE, SHOWN, SERIES, RUN_ENDED, DAMAGED = range(14)


_CHANGES = "open openat openat2 creat mkdir mkdirat link linkat symlink symlinkat unlink unlinkat rmdir rename renameat renameat2"
_CHANGES += " write writev pwrite64 pwritev pwritev2 truncate ftruncate fallocate copy_file_range sendfile splice mmap"
_SYNCS = "fsync fdatasync sync syncfs sync_file_range msync"
_DESCRIPTORS = "close dup dup2 dup3 fcntl lseek"
_SENDS = "sendto sendmsg sendmmsg"
_CALLS = f"{_CHANGES} {_SYNCS} {_DESCRIPTORS} {_SENDS}".split()

_CALL = re.compile(r"(\w+)\((.*)\)\s+= (-?\d+|\?)(<[^>]*>(?:\(deleted\))?)?.*", re.S)
_FD = re.compile(r"(-?\d+|AT_FDCWD)(?:<([^>]*)>)?(\(deleted\))?")
_COUNT = re.compile(rb"^crash_counts (\d+)$", re.M)


def strace(output, command):
    """The words that run a command so that `Recorder.read` can read the output. The command is a child of the caller."""
    return ["strace", "-D", "-f", "--seccomp-bpf", "-q", "-y", "-xx", "-s", str(1 << 24), "-e", f"trace={','.join(_CALLS)}", "-e", "signal=kill", "-o", output, *command]


def has_ended(output, pid):
    """Whether strace has seen the end of the process."""
    with open(output, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
        return re.search(rb"^%d +\+\+\+ " % pid, file.read(), re.M) is not None


def _bytes(quoted):
    """The bytes of strace's "\\x61..."; a string that it has cut off is an error."""
    assert quoted.startswith('"') and quoted.endswith('"'), quoted[-60:]
    return bytes.fromhex(quoted[1:-1].replace("\\x", ""))


def _arguments(text):
    """Splits at the commas outside of brackets. All texts are hexadecimal, so they have none."""
    words, depth, at = [], 0, 0
    for i, letter in enumerate(re.finditer(r"[][{}(),]", text)):
        mark = letter.group()
        depth += (mark in "[{(") - (mark in "]})")
        if mark == "," and depth == 0:
            words.append(text[at : letter.start()].strip())
            at = letter.end()
    return [*words, text[at:].strip()]


def _varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def _fields(message):
    """Of a protobuf message: number, content, and the bytes of the whole field."""
    at = 0
    while at < len(message):
        begin = at
        key, at = _varint(message, at)
        if key & 7 == 2:
            size, at = _varint(message, at)
        else:
            size = {1: 8, 5: 4}.get(key & 7) or _varint(message, at)[1] - at
        yield key >> 3, message[at : at + size], message[begin : at + size]
        at += size


def _series(body):
    """Of a remote write request: the encoded labels of each series, and whether its sample is a stale marker."""
    for number, series, _ in _fields(snappy.uncompress(body)):
        if number == 1:
            fields = list(_fields(series))
            if any(field == 2 for field, _, _ in fields):
                yield b"".join(whole for field, _, whole in fields if field == 1), any(field == 2 and STALE in content for field, content, _ in fields)


class Recorder:
    def __init__(self, root):
        self.root = os.path.realpath(root)
        self.operations = []
        self._directories = {self.root: 0}  # by path
        self._files = {}  # by path
        self._next = 1
        self._sizes = {}
        self._fds = {}  # of files: the inode, and [position, appends] of the open file
        self._sent = {}  # by socket: what was sent since the last request began
        self._active = set()  # series that were sent and not ended
        self._contents = {}  # of segments, by path

    def _add(self, what, target=0, number=0, name=b"", data=b""):
        self.operations.append((what, target, number, name, data))

    def write(self, path, operations=None):
        """`operations`: others than those that were recorded."""
        with open(path, "wb") as file:
            for what, target, number, name, data in operations or self.operations:
                name = name.encode() if isinstance(name, str) else name
                file.write(struct.pack("<BIQI", what, target, number, len(name)) + name + struct.pack("<I", len(data)) + data)

    def segment(self, path, content):
        """The last content of a segment. To be called before `write`."""
        self._contents[os.path.realpath(path)] = content
        for i, (what, directory, inode, name, data) in enumerate(self.operations):
            if what == Do.SEGMENT and data == os.fsencode(os.path.realpath(path)):
                self.operations[i] = (what, directory, inode, name, content)

    def damaged(self, path):
        """Another program has written the file, and it is on disk."""
        inode = self._files[os.path.realpath(path)]
        self._add(Do.DAMAGED, inode, data=Path(path).read_bytes())

    def run_ended(self):
        """The agent has ended, and so has the run."""
        self._add(Do.RUN_ENDED)

    def read(self, output):
        """Adds what strace wrote about one process, from its start to its end."""
        self._fds, self._sent = {}, {}
        unfinished = {}
        for line in open(output, encoding="ascii"):
            pid, text = line.rstrip("\n").split(maxsplit=1)
            if text.startswith(("+++", "---")):
                continue
            if text.endswith("<unfinished ...>"):
                begun = text.removesuffix("<unfinished ...>").rstrip()
                unfinished[pid] = (begun, len(self.operations))
                self._begin(begun)
                continue
            covers = len(self.operations)
            if text.startswith("<... "):
                begun, covers = unfinished.pop(pid)
                text = begun + re.sub(r"^<\.\.\. \w+ resumed>", "", text)
            else:
                self._begin(text)
            call = _CALL.fullmatch(text)
            if call is None:
                assert " = ?" in text or "exit" in text, f"cannot read {text[:200]}"
                continue
            name, words, result, target = call.groups()
            if result == "?" or int(result) < 0:
                continue
            self._do(name, _arguments(words), int(result), target, covers)

    # What others are told counts from when the call begins, what happens to files when it has returned. A close counts from its
    # begin: before it returns, another thread may have got the same number for another file.
    def _begin(self, text):
        name, _, words = text.partition("(")
        if name == "close":
            self._fds.pop(_FD.match(words).group(1), None)
        if name not in _SENDS.split():
            return
        words = _arguments(words.rpartition(")")[0] if words.endswith(")") or ") = " in words else words)
        socket = _FD.match(words[0])
        data = _bytes(words[1].strip()) if name == "sendto" else self._parts(words[1])
        requests = (b"PUT ", b"POST ", b"DELETE ", b"GET ", b"HTTP/")
        key = socket.group(1)
        if data.startswith(requests):
            self._sent[key] = data
        elif key in self._sent:
            self._sent[key] += data
        else:
            return
        self._told(self._sent[key], begins=data.startswith(requests))

    def _told(self, message, begins):
        head, _, body = message.partition(b"\r\n\r\n")
        verb, path = head.split(b" ", 2)[:2]
        if begins and path.startswith(b"/metrics/job/") and verb in (b"PUT", b"DELETE"):
            self._add(Do.PUT if verb == b"PUT" else Do.DELETE, name=path)
        size = re.search(rb"^Content-Length: (\d+)\r?$", head, re.M | re.I)
        if size is None or len(body) != int(size.group(1)):
            return
        if verb == b"PUT":
            for count in _COUNT.findall(body):
                self._add(Do.SHOWN, number=int(count), name=path)
        elif verb == b"POST":
            for labels, stale in _series(body):
                if stale == (labels in self._active):
                    self._add(Do.SERIES, number=int(stale), data=labels)
                self._active.discard(labels) if stale else self._active.add(labels)

    @staticmethod
    def _parts(text):
        return b"".join(_bytes(part) for part in re.findall(r'iov_base=("[^"]*")', text))

    def _path(self, directory, name):
        path = os.fsdecode(_bytes(name))
        if not path.startswith("/"):
            path = os.path.join(self._fd_path(directory), path)
        return os.path.normpath(path)

    @staticmethod
    def _fd_path(word):
        path = _FD.match(word).group(2)
        return os.fsdecode(bytes.fromhex(path.replace("\\x", ""))) if path else ""

    def _place(self, path):
        """Its directory's number and its name; None: it is not below the root."""
        directory, name = os.path.split(path)
        return (self._directories[directory], name) if directory in self._directories else None

    def _inside(self, path):
        return path == self.root or path.startswith(self.root + "/")

    def _new(self):
        self._next += 1
        return self._next - 1

    def _inode(self, word):
        """Of a descriptor's open file: [inode, position, appends], or None."""
        return self._fds.get(_FD.match(word).group(1))

    def _do(self, name, words, result, target, covers):
        method = getattr(self, "_" + name, None)
        if method is not None:
            method(words, result, target, covers)
        elif any(self._inside(self._fd_path(word)) for word in words if _FD.match(word)):
            raise NotImplementedError(f"the recorder does not know {name}({', '.join(words)[:200]})")

    def _open(self, words, result, target, covers):
        self._openat(["AT_FDCWD", *words], result, target, covers)

    def _openat(self, words, result, target, covers):
        path, flags = self._path(words[0], words[1]), words[2]
        fd = str(result)
        self._fds.pop(fd, None)
        if not self._inside(path) or path in self._directories:
            return
        assert "O_TMPFILE" not in flags, path
        directory, name = self._place(path)
        if path not in self._files:
            inode = self._files[path] = self._new()
            self._sizes[inode] = 0
            if path.endswith(".seg"):
                self._add(Do.SEGMENT, directory, inode, name, self._contents.get(path, os.fsencode(path)))
            else:
                assert "O_CREAT" in flags, f"{path} was there before"
                self._add(Do.LINK, directory, inode, name)
        inode = self._files[path]
        if "O_TRUNC" in flags and self._sizes[inode] > 0:
            self._add(Do.TRUNCATE, inode)
            self._sizes[inode] = 0
        self._fds[fd] = [inode, 0, "O_APPEND" in flags]

    def _close(self, words, result, target, covers):
        pass  # see _begin

    def _fcntl(self, words, result, target, covers):
        if words[1].startswith("F_DUPFD"):
            self._dup(words, result, target, covers)

    def _dup(self, words, result, target, covers):
        self._fds.pop(str(result), None)
        if self._inode(words[0]) is not None:
            self._fds[str(result)] = self._inode(words[0])

    _dup2 = _dup3 = _dup

    def _lseek(self, words, result, target, covers):
        if self._inode(words[0]) is not None:
            self._inode(words[0])[1] = result

    def _mmap(self, words, result, target, covers):
        assert self._inode(words[4]) is None or "PROT_WRITE" not in words[2] or "MAP_SHARED" not in words[3], words

    def _mkdirat(self, words, result, target, covers):
        path = self._path(words[0], words[1])
        if self._inside(path):
            directory, name = self._place(path)
            self._directories[path] = self._new()
            self._add(Do.MKDIR, directory, self._directories[path], name)

    def _unlinkat(self, words, result, target, covers):
        path = self._path(words[0], words[1])
        if self._inside(path):
            self._add(Do.UNLINK, self._place(path)[0], name=self._place(path)[1])
            del self._files[path]

    def _unlink(self, words, result, target, covers):
        self._unlinkat(["AT_FDCWD", *words], result, target, covers)

    def _renameat(self, words, result, target, covers):
        path, to = self._path(words[0], words[1]), self._path(words[2], words[3])
        if not self._inside(path) and not self._inside(to):
            return
        assert self._place(path)[0] == self._place(to)[0], f"{path} is moved to another directory"
        inode = self._files[to] = self._files.pop(path)
        self._add(Do.RENAME, self._place(path)[0], inode, self._place(path)[1], os.fsencode(self._place(to)[1]))

    def _renameat2(self, words, result, target, covers):
        assert "RENAME_EXCHANGE" not in words[4], words
        self._renameat(words, result, target, covers)

    def _rename(self, words, result, target, covers):
        self._renameat(["AT_FDCWD", words[0], "AT_FDCWD", words[1]], result, target, covers)

    def _write(self, words, result, target, covers):
        self._write_parts(words[0], lambda: _bytes(words[1]), result)

    def _writev(self, words, result, target, covers):
        self._write_parts(words[0], lambda: self._parts(words[1]), result)

    def _write_parts(self, word, data, result):
        file = self._inode(word)
        if file is not None:
            at = self._sizes[file[0]] if file[2] else file[1]
            self._written(file[0], at, data()[:result])
            file[1] = at + result

    def _pwrite64(self, words, result, target, covers):
        file = self._inode(words[0])
        if file is not None:
            self._written(file[0], int(words[3]), _bytes(words[1])[:result])

    def _written(self, inode, at, data):
        self._add(Do.WRITE, inode, at, data=data)
        self._sizes[inode] = max(self._sizes[inode], at + len(data))

    def _ftruncate(self, words, result, target, covers):
        file = self._inode(words[0])
        if file is not None:
            self._sizes[file[0]] = int(words[1])
            self._add(Do.TRUNCATE, file[0], int(words[1]))

    def _fsync(self, words, result, target, covers):
        path = self._fd_path(words[0])
        if self._inode(words[0]) is not None:
            self._add(Do.SYNC, self._inode(words[0])[0], covers)
        elif path in self._directories:
            self._add(Do.SYNC, self._directories[path], covers)

    _fdatasync = _fsync
