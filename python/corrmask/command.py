"""The command scstream: the header of a stream, and conversions (convert.py)."""
from __future__ import annotations

import json
import os
import sys

USAGE = """Usage: scstream FILE                   print the header of a stream (- is standard input); of the vocabulary only its size
       scstream COMMAND [OPTION...]    (scstream COMMAND --help says more)

  model            say what a model is, with its vocabulary, and make a folder that the tools read of a Geneformer
  from-dataset     a Hugging Face dataset of tokens to a tokens stream
  to-dataset       a tokens stream to a Hugging Face dataset
  from-geneformer  Geneformer's dictionaries to a vocabulary for rankenc -m
  to-geneformer    a vocabulary to Geneformer's dictionaries
  from-bmfm        a released model of BMFM-RNA to a model of scembed and sctrain"""
COMMANDS = ("model", "from-dataset", "to-dataset", "from-geneformer", "to-geneformer", "from-bmfm")


def print_header(path: str) -> None:
    import corrmask.stream as scstream
    with scstream.read(path) as stream:
        h = dict(stream.header)
        if h.get("vocab"):
            h["vocab"] = {k: v if not isinstance(v, list) else "%d rows" % len(v) for k, v in h["vocab"].items()}
        print(json.dumps(h, indent=1, ensure_ascii=False))


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv if argv is None else argv
    if argv[1:2] == ["model"]:      # needs nothing but Python
        return run(argv)
    try:
        import numpy, xxhash, zstandard  # noqa: E401, F401
    except ModuleNotFoundError as error:
        sys.exit("scstream: this Python has no {0}: install the Debian package python3-{0}, or pip install {0}".format(error.name))
    import corrmask.stream as scstream
    if len(argv) == 2 and argv[1] in ("-V", "--version"):
        print("scstream %s (scstream 1.0)" % scstream.VERSION)
        return 0
    if argv[1:] in (["-h"], ["--help"]) or (len(argv) != 2 and argv[1:2] not in [[c] for c in COMMANDS]):
        asked = argv[1:] in (["-h"], ["--help"])
        print(USAGE, file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    return run(argv)


def run(argv: list[str]) -> int:
    try:
        if argv[1] == "model":
            from corrmask import model
            model.main(argv[2:])
        elif argv[1] in COMMANDS:
            from corrmask import convert
            convert.main(argv[1:])
        else:
            print_header(argv[1])
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except MemoryError:
        print("scstream: out of memory", file=sys.stderr)
        return 1
    except Exception as error:
        if not isinstance(error, (OSError, RuntimeError)) and not type(error).__module__.startswith("corrmask"):     # RuntimeError: no thread can be started
            raise
        print("scstream: %s" % error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
