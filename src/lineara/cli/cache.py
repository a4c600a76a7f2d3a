"""`python -m lineara cache`: where compiled code is kept on disk, how much it is; its removal."""

import argparse

from lineara.engines import disk_cache


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to do."""
    parser.add_argument("what", choices=("info", "clear"), help="tell about it, or remove it")


def run(options: argparse.Namespace) -> int:
    """Print what there is, or what was removed."""
    kept = disk_cache()
    if kept.directory is None:
        print(f"compiled code is not kept on disk: {kept.why}")
    elif options.what == "clear":
        print(f"{kept.directory}: {kept.clear()} files removed")
    else:
        entries, most = kept.entries(), kept.limits
        print(
            f"{kept.directory}: {len(entries)} of at most {most.entries} programs, "
            f"{sum([e.nbytes for e in entries]):,} of at most {most.nbytes:,} bytes"
        )
    return 0
