import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'

import { answer, client } from './client'
import type { ExperimentState, Round } from './types'

export interface ExperimentFilters {
  state: ExperimentState[]
  name: string
}

/** The parts of an experiment that are fetched, and grow stale, each on its own. */
export type Part = 'show' | 'rounds' | 'contributions' | 'metrics' | 'artifacts'

export function experimentKey(id: string) {
  return ['experiment', id] as const
}

export function partKey(id: string, part: Part) {
  return [...experimentKey(id), part] as const
}

const PAGE = 100
const LIST_REFETCH_MILLISECONDS = 5000

const byCursor = {
  initialPageParam: undefined as string | undefined,
  getNextPageParam: (page: { next_cursor: string | null }) => page.next_cursor ?? undefined,
}

function page(cursor: string | undefined) {
  return { limit: PAGE, ...(cursor !== undefined && { cursor }) }
}

export const infoQuery = queryOptions({
  queryKey: ['info'],
  queryFn: ({ signal }) => answer(client.GET('/api/v1/info', { signal })),
  staleTime: Infinity,
})

export function experimentsQuery({ state, name }: ExperimentFilters) {
  return infiniteQueryOptions({
    queryKey: ['experiments', state, name],
    queryFn: ({ pageParam, signal }) => {
      const query = { state, ...(name !== '' && { name }), ...page(pageParam) }
      return answer(client.GET('/api/v1/experiments', { params: { query }, signal }))
    },
    ...byCursor,
    refetchInterval: LIST_REFETCH_MILLISECONDS,
  })
}

export function experimentQuery(id: string) {
  return queryOptions({
    queryKey: partKey(id, 'show'),
    queryFn: ({ signal }) =>
      answer(client.GET('/api/v1/experiments/{experiment_id}', { params: { path: { experiment_id: id } }, signal })),
  })
}

/** All rounds in order: the table starts with the newest, and pages start with the oldest. */
export function roundsQuery(id: string) {
  return queryOptions({
    queryKey: partKey(id, 'rounds'),
    queryFn: async ({ signal }) => {
      const rounds: Round[] = []
      let cursor: string | undefined
      do {
        const init = { params: { path: { experiment_id: id }, query: page(cursor) }, signal }
        const found = await answer(client.GET('/api/v1/experiments/{experiment_id}/rounds', init))
        rounds.push(...found.items)
        cursor = found.next_cursor ?? undefined
      } while (cursor !== undefined)
      return rounds
    },
  })
}

export function contributionsQuery(id: string, round: number) {
  return infiniteQueryOptions({
    queryKey: [...partKey(id, 'contributions'), round],
    queryFn: ({ pageParam, signal }) => {
      const query = { round, ...page(pageParam) }
      return answer(
        client.GET('/api/v1/experiments/{experiment_id}/contributions', {
          params: { path: { experiment_id: id }, query },
          signal,
        }),
      )
    },
    ...byCursor,
  })
}

export function metricsQuery(id: string) {
  return queryOptions({
    queryKey: partKey(id, 'metrics'),
    queryFn: ({ signal }) =>
      answer(
        client.GET('/api/v1/experiments/{experiment_id}/metrics', { params: { path: { experiment_id: id } }, signal }),
      ),
  })
}

export function artifactsQuery(id: string) {
  return queryOptions({
    queryKey: partKey(id, 'artifacts'),
    queryFn: ({ signal }) =>
      answer(
        client.GET('/api/v1/experiments/{experiment_id}/artifacts', {
          params: { path: { experiment_id: id } },
          signal,
        }),
      ),
  })
}

export function cancelExperiment(id: string) {
  return answer(client.POST('/api/v1/experiments/{experiment_id}:cancel', { params: { path: { experiment_id: id } } }))
}

export function signIn(token: string) {
  return answer(client.POST('/api/v1/session', { body: { token } }))
}

export function signOut() {
  return answer(client.DELETE('/api/v1/session'))
}
