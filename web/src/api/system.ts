import { queryOptions } from '@tanstack/react-query'

import { politeInterval } from '@/lib/stream/back-off'

import { answer, client } from './client'
import { REFETCH_MILLISECONDS } from './queries'

/** The state of the whole service, refetched while a page shows it. */
export const systemQuery = queryOptions({
  queryKey: ['system'],
  queryFn: ({ signal }) => answer(client.GET('/api/v1/system', { signal })),
  refetchInterval: ({ state }) => politeInterval(state, REFETCH_MILLISECONDS),
})
