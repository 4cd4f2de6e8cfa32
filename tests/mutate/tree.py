"""A copy of the checkout in build/mutate/tree, and its build. It is refreshed, not made anew: the next run compiles what changed."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from processes import run

PRODUCT = ("agent", "lib/src", "lib/include")
_BUILD_SECONDS = 1200


def files_of(checkout):
    """The tracked files, and new ones that git does not ignore."""
    command = ["git", "ls-files", "-coz", "--exclude-standard"]
    listed = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)
    return sorted(name for name in listed.stdout.split("\0") if name and (checkout / name).is_file())


def sources_of(directory, path=""):
    """{path: text} of the product's C++ sources that are `path` or below it."""
    found = [source for product in PRODUCT for source in (directory / product).rglob("*") if source.suffix in (".cc", ".h")]
    names = {str(source.relative_to(directory)): source for source in found}
    path = path.rstrip("/")
    return {name: source.read_text() for name, source in names.items() if path in ("", ".", name) or name.startswith(f"{path}/")}


class Tree:
    def __init__(self, checkout, preset="mutate"):
        self._checkout = checkout
        self._preset = preset
        self.root = checkout / "build/mutate/tree"
        self.build_directory = self.root / "build" / preset
        self._original = {}  # of programs and objects: their hashes without a mutation
        self._ccache = {"CCACHE_BASEDIR": str(self.root), "CCACHE_NOHASHDIR": "1"}
        self.test_programs = []

    def refresh(self):
        """Makes the copy equal to the checkout. Returns a hash of all files."""
        names = files_of(self._checkout)
        digest = hashlib.sha256()
        for name in names:
            content = (self._checkout / name).read_bytes()
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
            copy = self.root / name
            if not copy.is_file() or copy.read_bytes() != content:
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(content)
            copy.chmod((self._checkout / name).stat().st_mode & 0o777)
        kept = set(names)
        for directory, below, files in os.walk(self.root):
            below[:] = [name for name in below if name != "__pycache__" and Path(directory, name) != self.root / "build"]
            for name in files:
                path = Path(directory, name)
                if str(path.relative_to(self.root)) not in kept:
                    path.unlink()
        (self.root / "build").mkdir(parents=True, exist_ok=True)
        for name in ("civetweb", "tools", "peers"):
            link = self.root / "build" / name
            if (self._checkout / "build" / name).exists() and not link.exists():
                link.symlink_to(self._checkout / "build" / name)
        return digest.hexdigest()[:16]

    def configure(self):
        options = ["-DPERSIA_METRICS_BUILD_PYTHON=ON", f"-DPERSIA_METRICS_CIVETWEB={self.root}/build/civetweb"]
        launcher = {f"CMAKE_{language}_COMPILER_LAUNCHER": "ccache" for language in ("C", "CXX") if shutil.which("ccache")}
        ended = run(["cmake", "--preset", self._preset, *options], 300, self.root, launcher)
        if not ended.ok:
            raise RuntimeError(f"cannot configure {self.root}:\n{ended.output[-4000:]}")
        programs = self._targets("EXECUTABLE")
        self.test_programs = [path for path in programs if re.fullmatch(r"tests/unit/(?!embedding_job)\w+/\w+_test", path)]

    def _targets(self, kind):
        """The build's paths of all targets of a kind of ninja's, for example EXECUTABLE."""
        ended = run(["ninja", "-C", self.build_directory, "-t", "targets", "all"], 60, self.root)
        return re.findall(rf"^([^\s:]+): \w*_{kind}\w*$", ended.output, re.MULTILINE)

    def build(self, targets):
        command = ["ninja", "-C", self.build_directory, "-j", str(os.cpu_count()), *targets]
        return run(command, _BUILD_SECONDS, self.root, self._ccache)

    def would_link(self, targets):
        """Which programs a build would link again."""
        ended = run(["ninja", "-C", self.build_directory, "-n", *targets], 60, self.root)
        return set(re.findall(r"Linking \w+ \w+(?: \w+)? (\S+)", ended.output))

    def note_originals(self):
        """Remembers programs and objects as they are now, without a mutation."""
        self._original = {path: _hash(path) for path in self._outputs()}

    def differs(self, pattern):
        """Whether a built file is another one than without the mutation."""
        return any(self._original.get(path) != _hash(path) for path in self.build_directory.glob(pattern))

    def same_objects(self, since):
        """Whether all objects that were compiled since then are what they were before."""
        new = [path for path in self._outputs() if path.suffix == ".o" and path.stat().st_mtime_ns >= since]
        return all(self._original.get(path) == _hash(path) for path in new)

    def _outputs(self):
        for directory, below, files in os.walk(self.build_directory):
            below[:] = [name for name in below if name != ".cmake"]
            for name in files:
                path = Path(directory, name)
                if name.endswith((".o", ".so")) or (path.suffix == "" and os.access(path, os.X_OK)):
                    yield path

    def read(self, path):
        return (self.root / path).read_text()

    def write(self, path, text):
        (self.root / path).write_text(text)


def _hash(path):
    try:
        return hashlib.sha256(path.read_bytes()).digest()
    except FileNotFoundError:
        return None


class Results:
    """The results of finished mutants, in a file with one line for each, so that an interrupted run goes on where it was."""

    def __init__(self, path):
        self._path = path
        self._known = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                result = json.loads(line)
                self._known.setdefault(result["key"], []).append(result)
            except (ValueError, KeyError):
                continue  # the end of an interrupted write

    def find(self, fingerprint, key, kinds=0, any_tree=False):
        """The newest result of this tree, if a survivor met so many layers. With `any_tree` also another tree's, but for survivors."""
        for result in reversed(self._known.get(key, [])):
            survived = result.get("outcome") == "survived"
            if (result["tree"] == fingerprint and not (survived and result["layers"] < kinds)) or (any_tree and not survived):
                return result
        return None

    def add(self, fingerprint, key, **result):
        entry = {"tree": fingerprint, "key": key, **result}
        self._known.setdefault(key, []).append(entry)
        with self._path.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        return entry
