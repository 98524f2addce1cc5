"""The command scstream: the header of a stream, and conversions. Help and all that reads no stream need no other package."""
from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

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


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="scstream", description="Streams of corrmask in Python. `scstream FILE` prints the header of a stream.")
    commands = p.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, text: str) -> Any:
        c = commands.add_parser(name, help=text, description=text)
        return c.add_argument
    add = command("from-dataset", "A Hugging Face dataset of tokens to a tokens stream (needs pyarrow).")
    add("folder", metavar="DIR", help="folder that save_to_disk wrote; its column input_ids holds the tokens")
    add("-m", "--vocab", required=True, metavar="FILE", help="vocabulary of the dataset, as from-geneformer or rankenc --fit writes it")
    add("-o", "--output", default="-", metavar="FILE", help="write to this file, which appears when it is complete (default: standard output)")
    add("--no-special-tokens", action="store_true", help="take cells without <cls> and <eos>, although the vocabulary has them, and any tokens in their place")
    add = command("to-dataset", "A tokens stream to a Hugging Face dataset (needs pyarrow).")
    add("stream", metavar="STREAM", help="- is standard input")
    add("folder", metavar="DIR", help="folder to make; load_from_disk reads it")
    add("--lengths", metavar="FILE", help="also write the lengths of the cells as a pickle, which Geneformer's pre-training asks for")
    add = command("from-geneformer", "Geneformer's dictionaries to a vocabulary for rankenc -m.")
    add("tokens", metavar="TOKEN_DICTIONARY.pkl", help="pickle, or table of two columns")
    add("medians", metavar="GENE_MEDIAN.pkl", help="pickle, or table of two columns")
    add("--names", metavar="FILE", help="gene_name_id_dict: fills in the symbols (default: the one beside the tokens; none: without)")
    add("--mapping", metavar="FILE", help="ensembl_mapping_dict: old ids and symbols become aliases (default: the one beside the tokens; none: without)")
    add("-o", "--output", default="-", metavar="FILE", help="write to this file (default: standard output)")
    add = command("to-geneformer", "A vocabulary to Geneformer's dictionaries.")
    add("vocab", metavar="VOCAB.tsv")
    add("tokens", metavar="TOKEN_DICTIONARY.pkl")
    add("medians", metavar="GENE_MEDIAN.pkl")
    add = command("from-bmfm", "A released model of BMFM-RNA to a model of scembed and sctrain --init.")
    add("model", metavar="CKPT|DIR", help="checkpoint of PyTorch Lightning, or the folder of one, or of config.json and model.safetensors")
    add("folder", metavar="DIR", help="folder to make")
    add("--tokenizer", metavar="FILE", help="tokenizer.json of the genes (default: tokenizers/genes/tokenizer.json next to the model)")
    add("--ontology", metavar="OBO", help="ontology of the heads whose classes are its terms, such as cl-basic.obo")
    return p


def run(argv: list[str]) -> None:
    a = parser().parse_args(argv)
    if a.command == "from-geneformer":
        from corrmask import model
        model.from_geneformer(a.tokens, a.medians, a.names, a.mapping, a.output)
    elif a.command == "to-geneformer":
        from corrmask import model
        model.to_geneformer(a.vocab, a.tokens, a.medians)
    else:
        from corrmask import bmfm, convert
        if a.command == "from-dataset":
            convert.from_dataset(a.folder, a.vocab, a.output, a.no_special_tokens)
        elif a.command == "to-dataset":
            convert.to_dataset(a.stream, a.folder, a.lengths)
        else:
            with convert.new_folder(a.folder) as temporary:
                bmfm.convert(a.model, temporary, a.tokenizer, a.ontology)


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv if argv is None else argv
    asked = argv[1:] in (["-h"], ["--help"])
    if asked or (len(argv) != 2 and argv[1:2] not in [[c] for c in COMMANDS]):
        print(USAGE, file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    try:
        if argv[1] == "model":
            from corrmask import model
            model.main(argv[2:])
        elif argv[1] in COMMANDS:
            run(argv[1:])
        elif argv[1] in ("-V", "--version"):
            import corrmask.stream as scstream
            print("scstream %s (scstream 1.0)" % scstream.VERSION)
        else:
            print_header(argv[1])
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except MemoryError:
        print("scstream: out of memory", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        print("scstream: this Python has no {0}: install the Debian package python3-{0}, or pip install {0}".format(error.name), file=sys.stderr)
        return 1
    except Exception as error:
        if not isinstance(error, (OSError, RuntimeError)) and not type(error).__module__.startswith("corrmask"):     # RuntimeError: no thread can be started
            raise
        print("scstream: %s" % error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
