"""HTTP layer: middleware, errors, pagination, entity tags, security headers, OpenAPI, the dashboard's files."""
