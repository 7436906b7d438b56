"""Programs that really do not stop, and what `deployctl why` says of each. docs/stuck.md says how to add one."""
