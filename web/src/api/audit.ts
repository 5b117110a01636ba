import { infiniteQueryOptions } from '@tanstack/react-query'

import { answer, client } from './client'
import { byCursor, page } from './paging'

/** Only entries with exactly these words; a word that is not given matches every entry. */
export interface AuditFilter {
  actor?: string | undefined
  action?: string | undefined
  subject?: string | undefined
}

/** The entries of the audit log, the newest first. */
export function auditQuery(wanted: AuditFilter) {
  const given = Object.fromEntries(Object.entries(wanted).filter(([, word]) => word !== undefined))
  return infiniteQueryOptions({
    queryKey: ['audit', given],
    queryFn: ({ pageParam, signal }) => {
      const query = { ...given, ...page(pageParam) }
      return answer(client.GET('/api/v1/audit', { params: { query }, signal }))
    },
    ...byCursor,
  })
}
