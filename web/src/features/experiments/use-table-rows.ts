import { keepPreviousData, useInfiniteQuery, useQueries } from '@tanstack/react-query'

import { experimentsQuery, groupMembersQuery, groupsQuery } from '@/api/experiment-list'

import { experimentRows, groupRows, type TableRow } from './table-rows'
import { type ExperimentListUrlState, openGroups, wantedOf } from './url-state'

/** The rows of the table as the server gives them, and the list that has more of them. */
export function useTableRows(view: ExperimentListUrlState) {
  const wanted = wantedOf(view)
  const grouped = view.group === 'seed'
  const alone = useInfiniteQuery({ ...experimentsQuery(wanted), placeholderData: keepPreviousData, enabled: !grouped })
  const groups = useInfiniteQuery({ ...groupsQuery(wanted), placeholderData: keepPreviousData, enabled: grouped })
  const open = grouped ? openGroups(view) : []
  const inside = useQueries({ queries: open.map((key) => groupMembersQuery(wanted, key)) })

  if (!grouped) {
    const rows: TableRow[] = experimentRows(alone.data?.pages.flatMap(({ items }) => items) ?? [])
    return { list: alone, rows }
  }
  const members = Object.fromEntries(open.map((key, index) => [key, inside[index]?.data ?? []]))
  return { list: groups, rows: groupRows(groups.data?.pages.flatMap(({ items }) => items) ?? [], open, members) }
}
