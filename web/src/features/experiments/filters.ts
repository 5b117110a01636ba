import { EXPERIMENT_STATES, type ExperimentState } from '@/api/types'
import { type Search, someOf } from '@/lib/search-params'

/** What the list's address holds: `?state=running&state=queued&name=demo`. */
export interface Filters {
  state?: ExperimentState[]
  name?: string
}

export function parseFilters(search: Search): Filters {
  const state = someOf(EXPERIMENT_STATES, search.state)
  return {
    ...(state.length > 0 && { state }),
    ...(typeof search.name === 'string' && search.name !== '' && { name: search.name }),
  }
}

export function toggleState(filters: Filters, state: ExperimentState): Filters {
  const chosen = filters.state ?? []
  const next = chosen.includes(state) ? chosen.filter((other) => other !== state) : [...chosen, state]
  return { ...filters, state: next }
}
