"""The kinds of step, one file each: YAML fields, what it describes, what it prepares, what it compiles to."""
