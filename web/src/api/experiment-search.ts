import { queryOptions } from '@tanstack/react-query'

import { answer, client } from './client'

const MOST = 30

/** The newest experiments with this in their name, to choose one of. */
export function experimentSearchQuery(name: string) {
  return queryOptions({
    queryKey: ['experiments', 'search', name],
    queryFn: ({ signal }) => {
      const query = { limit: MOST, ...(name !== '' && { name }) }
      return answer(client.GET('/api/v1/experiments', { params: { query }, signal }))
    },
  })
}
