"""The ways to a target: each carries argv and bytes, and knows nothing else."""
