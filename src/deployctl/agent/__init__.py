"""The program inside the target: standard library only, Python 3.8 to the newest, sent as a zip at each call, never installed.

Its modules import each other relatively, since they are `agent.*` in the target and `deployctl.agent.*` on the controller's disk.
"""
