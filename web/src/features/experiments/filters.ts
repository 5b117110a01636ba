import { EXPERIMENT_STATES, type ExperimentState } from '@/api/types'
import { oneOf, type Search, someOf } from '@/lib/search-params'

/** What the list's address holds: `?state=running&state=queued&name=demo&project=hearts&archived=only`. */
export interface Filters {
  state?: ExperimentState[]
  name?: string
  project?: string
  archived?: 'only'
}

export function parseFilters(search: Search): Filters {
  const state = someOf(EXPERIMENT_STATES, search.state)
  const archived = oneOf(['only'], search.archived)
  return {
    ...(state.length > 0 && { state }),
    ...(typeof search.name === 'string' && search.name !== '' && { name: search.name }),
    ...(typeof search.project === 'string' && search.project !== '' && { project: search.project }),
    ...(archived !== undefined && { archived }),
  }
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
