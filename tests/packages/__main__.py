"""Builds and tests the packages of another Debian: `sudo /usr/bin/python3 tests/packages 13`.

A new debootstrap of that release builds them by `./run package` into build/package-13, from the tracked files.
"""

import os
import subprocess
import sys
from pathlib import Path

from debian import SUITES, bootstrap, mount, run_in

ROOT = Path(__file__).resolve().parents[2]
_IN_A_NAMESPACE = "PERSIA_TEST_DEBIAN_IN_A_NAMESPACE"


def build(release):
    """Builds the packages in a plain Debian on a tmpfs, which ends with this process's mount namespace."""
    built = ROOT / f"build/package-{release}"
    built.mkdir(parents=True, exist_ok=True)
    mount("--make-rprivate", "/")
    mount("-t", "tmpfs", "-o", "mode=0755", "tmpfs", "/mnt")
    debian = Path("/mnt/debian")
    bootstrap(debian, release)
    mount("-t", "proc", "proc", debian / "proc")
    mount("--rbind", "/dev", debian / "dev")
    (debian / "packages").mkdir()
    mount("--bind", built, debian / "packages")
    subprocess.run(f"git ls-files -z | tar -c --null -T - | tar -x -C {debian}/srv", shell=True, cwd=ROOT, check=True)
    # packaging/build asks git for the tracked files.
    commit = "git init -q && git add -A && git -c user.name=x -c user.email=x@localhost commit -qm x"
    run_in(debian, f"apt-get -q update && apt-get -q -y --no-install-recommends install git && cd /srv && {commit}")
    run_in(debian, "cd /srv && ./run package && rm -f /packages/*.deb && cp build/package/*.deb /packages/")


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in SUITES:
        sys.exit(f"usage: sudo /usr/bin/python3 tests/packages RELEASE ({', '.join(SUITES)})")
    release = sys.argv[1]
    if _IN_A_NAMESPACE in os.environ:
        build(release)
        return
    if subprocess.run(["unshare", "--mount", sys.executable, *sys.argv], env={**os.environ, _IN_A_NAMESPACE: "1"}, check=False).returncode:
        sys.exit(1)
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", Path(__file__).parent]
    sys.exit(subprocess.run(tests, env={**os.environ, "PERSIA_TEST_DEBIAN": release}, check=False).returncode)


main()
