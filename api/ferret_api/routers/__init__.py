"""The endpoints of the REST API, one file per resource. Rules that several of them share are outside this package."""
