import { queryOptions } from '@tanstack/react-query'

import { answer, client } from './client'
import { experimentKey } from './queries'
import type { components } from './schema'

export type RoundUpdate = components['schemas']['RoundUpdate']
export type Agreement = components['schemas']['UpdateAgreement']

/** Statistics of a committed round's update, which never change. */
export function updateStatisticsQuery(id: string, number: number) {
  return queryOptions({
    queryKey: [...experimentKey(id), 'update', number],
    queryFn: ({ signal }) => {
      const params = { path: { experiment_id: id, number } }
      return answer(client.GET('/api/v1/experiments/{experiment_id}/rounds/{number}/update', { params, signal }))
    },
    staleTime: Infinity,
  })
}
