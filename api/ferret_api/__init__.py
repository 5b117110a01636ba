"""The REST service: experiments in, progress and checkpoints out. Knows HTTP and tokens; never loads torch."""
