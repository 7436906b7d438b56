"""Words in, exit status out. Playbooks become commands here."""
