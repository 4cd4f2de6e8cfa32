"""Makes a plain Debian and becomes its systemd. Runs as root in new mount, pid, cgroup, ipc and uts namespaces.

    boot.py ROOT RELEASE PACKAGES      ROOT is created; the folder PACKAGES appears in it as /packages
"""

import os
import sys
from pathlib import Path

from debian import bootstrap, enter, mount, mount_kernel, run_in

_INSTALL_SYSTEMD = "apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install systemd"


def main():
    root, release, packages = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    mount("--make-rprivate", "/")
    bootstrap(root, release)
    run_in(root, _INSTALL_SYSTEMD)
    mount_kernel(root)
    mount("-t", "cgroup2", "cgroup2", root / "sys/fs/cgroup")
    mount("-t", "tmpfs", "-o", "mode=0755", "tmpfs", root / "run")
    (root / "packages").mkdir()
    mount("--bind", packages, root / "packages")
    enter(root)
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "container": "persia"}
    os.execve("/lib/systemd/systemd", ["systemd", "--system", "--unit=basic.target", "--show-status=no"], environment)


main()
