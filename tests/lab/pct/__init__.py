"""The stand-in for Proxmox' `pct`, after the pct contract; packed into one file, it is /usr/sbin/pct on the lab's host."""
