import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'

import type { Rounds } from '@/lib/charts/zoom'
import { politeInterval } from '@/lib/stream/back-off'

import { allPages, answer, byCursor, client, page } from './client'
import { isAway } from './problem'
import {
  type Artifact,
  type Event,
  type Experiment,
  isFinished,
  type Participant,
  type Rejection,
  type Round,
} from './types'

/** The parts of an experiment that are fetched, and grow stale, each on its own. */
export type Part =
  | 'show'
  | 'participants'
  | 'participation'
  | 'rounds'
  | 'contributions'
  | 'rejections'
  | 'metrics'
  | 'artifacts'
  | 'events'

export function experimentKey(id: string) {
  return ['experiment', id] as const
}

export function partKey(id: string, part: Part) {
  return [...experimentKey(id), part] as const
}

export const REFETCH_MILLISECONDS = 5000
const EVENTS_PAGE = 200

export const infoQuery = queryOptions({
  queryKey: ['info'],
  queryFn: ({ signal }) => answer(client.GET('/api/v1/info', { signal })),
  staleTime: Infinity,
  refetchInterval: ({ state }) => isAway(state.error) && politeInterval(state, REFETCH_MILLISECONDS),
})

/** Refetched while it is unfinished, because no event reports a stall. */
export function experimentQuery(id: string) {
  return queryOptions({
    queryKey: partKey(id, 'show'),
    queryFn: async ({ signal }) => {
      const call = client.GET('/api/v1/experiments/{experiment_id}', {
        params: { path: { experiment_id: id } },
        signal,
      })
      return (await answer(call)) as Experiment
    },
    refetchInterval: ({ state }) => {
      const moves = state.data === undefined ? isAway(state.error) : !isFinished(state.data.state)
      return moves && politeInterval(state, REFETCH_MILLISECONDS)
    },
  })
}

/** Rounds in order. The first `kept` of them, which end at `cursor`, are not requested again. */
interface KnownRounds {
  rounds: Round[]
  kept: number
  cursor: string | undefined
}

const ROUNDS_PAGE = 200
/** Pages at the end that may still change: an evaluation comes after its round. */
const CHANGING = 2

/** All rounds in order: the table starts with the newest, and pages start with the oldest. */
export function roundsQuery(id: string) {
  const queryKey = partKey(id, 'rounds')
  return queryOptions({
    queryKey,
    queryFn: async ({ client: cache, signal }): Promise<KnownRounds> => {
      const known = cache.getQueryData<KnownRounds>(queryKey)
      const rounds = known?.rounds.slice(0, known.kept) ?? []
      const begin = { kept: rounds.length, cursor: known?.cursor }
      const ends = [begin]
      for (;;) {
        const cursor = ends.at(-1)?.cursor
        const query = { limit: ROUNDS_PAGE, ...(cursor !== undefined && { cursor }) }
        const params = { path: { experiment_id: id }, query }
        const found = await answer(client.GET('/api/v1/experiments/{experiment_id}/rounds', { params, signal }))
        rounds.push(...found.items)
        if (found.next_cursor === null) return { rounds, ...(ends.at(-CHANGING) ?? begin) }
        ends.push({ kept: rounds.length, cursor: found.next_cursor })
      }
    },
    select: ({ rounds }) => rounds,
  })
}

/** All refused uploads, by round. They are refetched, because no event reports a late upload. */
export function rejectionsQuery(id: string, live: boolean) {
  return queryOptions({
    queryKey: partKey(id, 'rejections'),
    queryFn: ({ signal }) =>
      allPages<Rejection>((cursor) =>
        client.GET('/api/v1/experiments/{experiment_id}/rejections', {
          params: { path: { experiment_id: id }, query: page(cursor) },
          signal,
        }),
      ),
    refetchInterval: ({ state }) => live && politeInterval(state, REFETCH_MILLISECONDS),
  })
}

/** All participants that have joined, by name. They are refetched, because no event reports when one was last seen. */
export function participantsQuery(id: string, live: boolean) {
  return queryOptions({
    queryKey: partKey(id, 'participants'),
    queryFn: ({ signal }) =>
      allPages<Participant>((cursor) =>
        client.GET('/api/v1/experiments/{experiment_id}/participants', {
          params: { path: { experiment_id: id }, query: page(cursor) },
          signal,
        }),
      ),
    refetchInterval: ({ state }) => live && politeInterval(state, REFETCH_MILLISECONDS),
  })
}

/** A round's contributions. No event reports a lease, so an open round's are refetched. */
export function contributionsQuery(id: string, round: number, live: boolean) {
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
    refetchInterval: ({ state }) => live && politeInterval(state, REFETCH_MILLISECONDS),
  })
}

/** More points than a chart is pixels wide. The server downsamples longer runs. */
const POINTS = 1000

/** All curves, downsampled if there are more rounds than points; or the curves of some rounds, with finer points. */
export function metricsQuery(id: string, rounds?: Rounds) {
  return queryOptions({
    queryKey: [...partKey(id, 'metrics'), ...(rounds ? [rounds.from, rounds.to] : [])],
    queryFn: ({ signal }) => {
      const params = { path: { experiment_id: id }, query: { points: POINTS, ...rounds } }
      return answer(client.GET('/api/v1/experiments/{experiment_id}/metrics', { params, signal }))
    },
  })
}

export function artifactsQuery(id: string) {
  return queryOptions({
    queryKey: partKey(id, 'artifacts'),
    queryFn: ({ signal }) =>
      allPages<Artifact>((cursor) =>
        client.GET('/api/v1/experiments/{experiment_id}/artifacts', {
          params: { path: { experiment_id: id }, query: page(cursor) },
          signal,
        }),
      ),
  })
}

/** The events after a number, in order. Repeated requests add new ones to those loaded. */
export function eventsQuery(id: string, after: number, live: boolean) {
  const queryKey = [...partKey(id, 'events'), after]
  return queryOptions({
    queryKey,
    queryFn: async ({ client: cache, signal }) => {
      const items = [...(cache.getQueryData<Event[]>(queryKey) ?? [])]
      for (;;) {
        const query = { after: items.at(-1)?.seq ?? after, limit: EVENTS_PAGE }
        const params = { path: { experiment_id: id }, query }
        const found = await answer(client.GET('/api/v1/experiments/{experiment_id}/events', { params, signal }))
        items.push(...found.items)
        if (found.items.length < EVENTS_PAGE) return items
      }
    },
    refetchInterval: ({ state }) => live && politeInterval(state, REFETCH_MILLISECONDS),
  })
}

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

/** The state of the whole service, refetched while a page shows it. */
export const systemQuery = queryOptions({
  queryKey: ['system'],
  queryFn: ({ signal }) => answer(client.GET('/api/v1/system', { signal })),
  refetchInterval: ({ state }) => politeInterval(state, REFETCH_MILLISECONDS),
})
