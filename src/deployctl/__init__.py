"""deployctl: deploys to and restarts long-running programs, and says why one does not stop."""

__version__ = "0.1.0"
