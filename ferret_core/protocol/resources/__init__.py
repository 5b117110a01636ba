"""Response models of the REST API, one module per resource. The API fills them, the SDK reads them."""
