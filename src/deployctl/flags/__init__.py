"""Flags of a workload: declared, read, and brought to the command line that is already there. Knows no command-line library."""

from deployctl.flags.declare import declare, declared, look_at_all
from deployctl.flags.flag import Flag, Given, Value
from deployctl.flags.merge import Shape, environment, merge, misspelled

__all__ = ["Flag", "Given", "Shape", "Value", "declare", "declared", "environment", "look_at_all", "merge", "misspelled"]
