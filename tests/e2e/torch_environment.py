"""The environment in which the launcher of Debian's torch works, 1.13 and 2.6. torchrun reads its options from PET_* too."""


def torch_environment(folder):
    """Variables for one run of torchrun, which meets in a new file in the folder."""
    return {
        # torch 1.13 fails on Python 3.11 without --redirects and --tee.
        "PET_REDIRECTS": "2",
        "PET_TEE": "1",
        # Debian's torch 2.6 has no libuv. With a store in a file, a variable makes it use none.
        "USE_LIBUV": "0",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_CONF": "store_type=file",
        "PET_RDZV_ENDPOINT": str(folder / "rendezvous"),
    }
