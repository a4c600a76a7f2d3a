"""`python -m lineara cache`: where compiled code is kept on disk, how much it is; its removal."""

import argparse
import sys

from lineara.engines import disk_cache


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to do."""
    parser.add_argument("what", choices=("info", "clear"), help="tell about it, or remove it")


def run(options: argparse.Namespace) -> int:
    """Print what there is, or what was removed; 1 if some of it stays."""
    kept = disk_cache(makes=False)
    if kept.directory is None:
        print(f"compiled code is not kept on disk: {kept.why}")
        return int(options.what == "clear" and kept.refused is not None)
    if options.what == "clear":
        removed, stay = kept.clear()
        print(f"{kept.directory}: {_files(removed)} removed")
        for error in stay:
            print(f"{error.filename} stays: {error.strerror}", file=sys.stderr)
        return int(bool(stay))
    files, most = kept.files(), kept.limits
    print(
        f"{kept.directory}: {_files(len(files))} of at most {most.entries:,}, "
        f"{sum([e.nbytes for e in files]):,} of at most {most.nbytes:,} bytes"
    )
    return 0


def _files(n: int) -> str:
    return f"{n:,} file{'s' * (n != 1)}"
