import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'

import { politeInterval } from '@/lib/stream/back-off'

import { answer, client } from './client'
import { partKey, REFETCH_MILLISECONDS } from './queries'
import type { ParticipationMatrix } from './types'

/** One round, with the names that its places are in. */
interface RoundParts {
  participants: readonly string[]
  states: readonly string[]
  parts: ParticipationMatrix['rounds'][number]
}

export interface PartsOfRounds {
  rounds: RoundParts[]
  displayNames: Record<string, string>
}

/** Committed rounds never change. */
function settled(rounds: readonly RoundParts[]): RoundParts[] {
  const open = rounds.findIndex(({ parts }) => parts.state !== 'committed')
  return open === -1 ? [...rounds] : rounds.slice(0, open)
}

/**
 * The participants of the rounds after `after`; settled rounds are not requested again. No event reports a lease, so
 * rounds that are not settled are refetched at an interval while the experiment is live.
 */
export function participationQuery(id: string, after: number, live: boolean) {
  const queryKey = [...partKey(id, 'participation'), after]
  return queryOptions({
    queryKey,
    queryFn: async ({ client: cache, signal }): Promise<PartsOfRounds> => {
      const known = cache.getQueryData<PartsOfRounds>(queryKey)
      const rounds = settled(known?.rounds ?? [])
      const displayNames = { ...known?.displayNames }
      let next: number | null = rounds.at(-1)?.parts.round ?? after
      while (next !== null) {
        const params = { path: { experiment_id: id }, query: { after_round: next } }
        const page: ParticipationMatrix = await answer(
          client.GET('/api/v1/experiments/{experiment_id}/participation', { params, signal }),
        )
        const { participants, states } = page
        rounds.push(...page.rounds.map((parts) => ({ participants, states, parts })))
        Object.assign(displayNames, page.display_names)
        next = page.next_after_round
        // Pages that have arrived are shown, and a restarted query does not request them again.
        if (next !== null)
          cache.setQueryData<PartsOfRounds>(queryKey, { rounds: [...rounds], displayNames: { ...displayNames } })
      }
      return { rounds, displayNames }
    },
    // Comparing hundreds of thousands of numbers takes longer than drawing them.
    structuralSharing: false,
    refetchInterval: ({ state }) => live && politeInterval(state, REFETCH_MILLISECONDS),
  })
}

/** The rounds of one participant, the newest first. */
export function timelineQuery(id: string, participant: string) {
  return infiniteQueryOptions({
    queryKey: [...partKey(id, 'participation'), 'timeline', participant],
    queryFn: ({ pageParam, signal }) => {
      const params = {
        path: { experiment_id: id, participant },
        query: { limit: 100, ...(pageParam !== undefined && { cursor: pageParam }) },
      }
      return answer(
        client.GET('/api/v1/experiments/{experiment_id}/participants/{participant}/rounds', { params, signal }),
      )
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  })
}
