#!/usr/bin/env python3
# The command scstream, as make install puts it beside the tools; the package is in lib/corrmask/python.
import os
import runpy

runpy.run_path(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "lib", "corrmask", "python", "scstream"), run_name="__main__")
