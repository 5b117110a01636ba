import { queryOptions } from '@tanstack/react-query'

import { answer, client } from './client'
import type { CatalogKind } from './types'

/** An entry of the catalog, with the schema of its options. It never changes while the server runs. */
export function catalogEntryQuery(kind: CatalogKind, name: string) {
  return queryOptions({
    queryKey: ['catalog', kind, name],
    queryFn: ({ signal }) =>
      answer(client.GET('/api/v1/catalog/{kind}/{name}', { params: { path: { kind, name } }, signal })),
    staleTime: Infinity,
  })
}

/** All entries of a section of the catalog. */
export function catalogQuery(kind: CatalogKind) {
  return queryOptions({
    queryKey: ['catalog', kind],
    queryFn: ({ signal }) => answer(client.GET('/api/v1/catalog/{kind}', { params: { path: { kind } }, signal })),
    staleTime: Infinity,
  })
}
