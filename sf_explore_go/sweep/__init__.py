"""Many runs: plan, state, this machine, Slurm."""
