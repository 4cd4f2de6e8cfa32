"""torchrun with the export of torch's own metrics and events: `python -m persia_metrics.torchrun --nproc_per_node 4 train.py`.

For installations without the start-up hook, a folder on PYTHONPATH for example. The arguments are torchrun's.
"""

from __future__ import annotations

import os
from typing import List, Optional

import persia_metrics_startup


def main(args: Optional[List[str]] = None) -> None:
    """As torch.distributed.run.main, with its errors. The hook of the workers' Python, if there is one, exports from them too.

    ImportError: torch is not installed.
    """
    os.environ.setdefault("PERSIA_METRICS_TORCHELASTIC", "1")
    persia_metrics_startup.start()
    from torch.distributed import run

    run.main(args)


if __name__ == "__main__":
    main()
