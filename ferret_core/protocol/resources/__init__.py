"""What the REST API answers, one module for each resource: the API fills these models, the SDK reads them."""
