import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'

import { politeInterval } from '@/lib/stream/back-off'

import { answer, byCursor, client, page } from './client'
import { REFETCH_MILLISECONDS } from './queries'
import type { operations } from './schema'
import type { ExperimentState } from './types'

/** Sort keys of the list. A minus puts the greatest first. */
export type Sort = NonNullable<NonNullable<operations['list_experiments']['parameters']['query']>['sort']>

/** Filters and order of the list; the newest come first without `sort`. */
export interface Wanted {
  state?: ExperimentState[] | undefined
  name?: string | undefined
  project?: string | undefined
  tag?: string[] | undefined
  archived?: 'only' | undefined
  stalled?: 'only' | undefined
  algorithm?: string | undefined
  dataset?: string | undefined
  /** Bounds of columns of numbers: "eval_loss<2". */
  where?: string[] | undefined
  sort?: Sort | undefined
}

/** Prefix of every list's query key: a change of one experiment makes all lists stale. */
export const LISTS_KEY = ['experiments'] as const

const MOST_MEMBERS = 200

/** Experiments, page by page. */
export function experimentsQuery(wanted: Wanted) {
  return infiniteQueryOptions({
    queryKey: [...LISTS_KEY, 'list', parameters(wanted)],
    queryFn: ({ pageParam, signal }) => {
      const query = { ...parameters(wanted), ...page(pageParam) }
      return answer(client.GET('/api/v1/experiments', { params: { query }, signal }))
    },
    ...byCursor,
    refetchInterval: ({ state }) => politeInterval(state, REFETCH_MILLISECONDS),
  })
}

/** The same experiments, grouped where they differ in name and seed only. */
export function groupsQuery(wanted: Wanted) {
  return infiniteQueryOptions({
    queryKey: [...LISTS_KEY, 'groups', parameters(wanted)],
    queryFn: ({ pageParam, signal }) => {
      const query = { ...parameters(wanted), ...page(pageParam) }
      return answer(client.GET('/api/v1/experiments/groups', { params: { query }, signal }))
    },
    ...byCursor,
    refetchInterval: ({ state }) => politeInterval(state, REFETCH_MILLISECONDS),
  })
}

/** The first 200 members of a group, more than anybody looks through. */
export function groupMembersQuery(wanted: Wanted, group: string) {
  return queryOptions({
    queryKey: [...LISTS_KEY, 'members', parameters(wanted), group],
    queryFn: async ({ signal }) => {
      const query = { ...parameters(wanted), seed_group: group, limit: MOST_MEMBERS }
      return (await answer(client.GET('/api/v1/experiments', { params: { query }, signal }))).items
    },
    refetchInterval: ({ state }) => politeInterval(state, REFETCH_MILLISECONDS),
  })
}

/** Query parameters of the request; filters that are not set are left out. */
function parameters({ state, name, project, tag, archived, stalled, algorithm, dataset, where, sort }: Wanted) {
  return {
    ...(state && { state }),
    ...(name !== undefined && name !== '' && { name }),
    ...(project !== undefined && { project }),
    ...(tag && { tag }),
    ...(archived && { archived: true }),
    ...(stalled && { stalled: true }),
    ...(algorithm !== undefined && { algorithm }),
    ...(dataset !== undefined && { dataset }),
    ...(where && { where }),
    ...(sort && { sort }),
  }
}

const MOST = 30

/** The newest experiments with this text in their name, to choose from. */
export function experimentSearchQuery(name: string) {
  return queryOptions({
    queryKey: ['experiments', 'search', name],
    queryFn: ({ signal }) => {
      const query = { limit: MOST, ...(name !== '' && { name }) }
      return answer(client.GET('/api/v1/experiments', { params: { query }, signal }))
    },
  })
}
