import { EXPERIMENT_STATES, type ExperimentState } from '@/api/types'
import { oneOf, type Search, someOf } from '@/lib/search-params'

/** What the list's address holds: `?state=running&state=queued&name=demo&project=hearts&archived=only`. */
export interface Filters {
  state?: ExperimentState[] | undefined
  name?: string | undefined
  project?: string | undefined
  archived?: 'only' | undefined
}

export function parseFilters(search: Search): Filters {
  const state = someOf(EXPERIMENT_STATES, search.state)
  // Named even if undefined: the router keeps what an address holds unless it is told otherwise.
  return {
    state: state.length > 0 ? state : undefined,
    name: text(search.name),
    project: text(search.project),
    archived: oneOf(['only'], search.archived),
  }
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

export function toggleState(filters: Filters, state: ExperimentState): Filters {
  const chosen = filters.state ?? []
  const next = chosen.includes(state) ? chosen.filter((other) => other !== state) : [...chosen, state]
  return { ...filters, state: next }
}

export function toggleProject({ project, ...others }: Filters, name: string): Filters {
  return project === name ? others : { ...others, project: name }
}

export function toggleArchived({ archived, ...others }: Filters): Filters {
  return archived === 'only' ? others : { ...others, archived: 'only' }
}
