"""The client for data owners: a participant's loop over rounds, its terms, its privacy budget and its files."""
