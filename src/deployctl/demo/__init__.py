"""The demo: a workspace with a training run on this machine, to try a restart on. train/ and old/ are data, not modules."""
