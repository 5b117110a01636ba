"""A participant's side of a round: local training, optional functions of the site, and the loop over rounds."""
