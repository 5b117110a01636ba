import type { Sort, Wanted } from '@/api/experiment-list'
import { EXPERIMENT_STATES, type ExperimentState } from '@/api/types'
import { oneOf, type Search, someOf, word } from '@/lib/search-params'

import { chosenColumns, SORTS } from './columns'

/** The state in the address: `?state=running&tag=hearts&sort=-rouge_l&columns=state,seed&group=seed`. */
export interface ExperimentListUrlState extends Wanted {
  /** Ids by comma, in the table's order; without them what this browser remembers is shown. */
  columns?: string | undefined
  /** Experiments that differ in the seed only are one row. */
  group?: 'seed' | undefined
  /** Keys of the groups that are open, by comma. */
  open?: string | undefined
}

export type ChangeExperimentListUrl = (change: (view: ExperimentListUrlState) => ExperimentListUrlState) => void

const BOUND = /^\w+[<>]=?-?[\d.]+(e[+-]?\d+)?$/i

export function parseExperimentListUrl(search: Search): ExperimentListUrlState {
  const state = someOf(EXPERIMENT_STATES, search.state)
  const tag = [search.tag].flat().filter((tag) => word(tag) !== undefined)
  const where = [search.where].flat().filter((bound) => typeof bound === 'string' && BOUND.test(bound)) as string[]
  // Every key is named, even if undefined: the router keeps keys of the address that are missing here.
  return {
    state: state.length > 0 ? state : undefined,
    name: word(search.name),
    project: word(search.project),
    tag: tag.length > 0 ? (tag as string[]) : undefined,
    archived: oneOf(['only'], search.archived),
    stalled: oneOf(['only'], search.stalled),
    algorithm: word(search.algorithm),
    dataset: word(search.dataset),
    where: where.length > 0 ? where : undefined,
    sort: oneOf(SORTS, search.sort),
    columns: chosenColumns(word(search.columns))?.join(','),
    group: oneOf(['seed'], search.group),
    open: word(search.open),
  }
}

/** The part of the state that the server's list needs. */
export function wantedOf({ sort, ...view }: ExperimentListUrlState): Wanted {
  return { ...filtersOf(view), sort }
}

/** The part of the state that decides which experiments are listed. */
export function filtersOf(view: ExperimentListUrlState) {
  const { state, name, project, tag, archived, stalled, algorithm, dataset, where } = view
  return { state, name, project, tag, archived, stalled, algorithm, dataset, where }
}

export function isFiltered(view: ExperimentListUrlState): boolean {
  return Object.values(filtersOf(view)).some((part) => part !== undefined && part.length > 0)
}

/** Every experiment, shown in the same way. */
export function withoutFilters({ sort, columns, group }: ExperimentListUrlState): ExperimentListUrlState {
  return { sort, columns, group }
}

export function toggleState(view: ExperimentListUrlState, state: ExperimentState): ExperimentListUrlState {
  return { ...view, state: toggled(view.state ?? [], state) }
}

export function toggleTag(view: ExperimentListUrlState, tag: string): ExperimentListUrlState {
  return { ...view, tag: toggled(view.tag ?? [], tag) }
}

function toggled<T>(chosen: readonly T[], item: T): T[] | undefined {
  const next = chosen.includes(item) ? chosen.filter((other) => other !== item) : [...chosen, item]
  return next.length > 0 ? next : undefined
}

export function toggleProject(view: ExperimentListUrlState, name: string): ExperimentListUrlState {
  return { ...view, project: view.project === name ? undefined : name }
}

export function toggleArchived(view: ExperimentListUrlState): ExperimentListUrlState {
  return { ...view, archived: view.archived === 'only' ? undefined : 'only' }
}

export function toggleStalled(view: ExperimentListUrlState): ExperimentListUrlState {
  return { ...view, stalled: view.stalled === 'only' ? undefined : 'only' }
}

export function toggleGrouping(view: ExperimentListUrlState): ExperimentListUrlState {
  return { ...view, group: view.group === 'seed' ? undefined : 'seed', open: undefined }
}

export function openGroups({ open }: ExperimentListUrlState): string[] {
  return open === undefined ? [] : open.split(',')
}

export function toggleOpen(view: ExperimentListUrlState, key: string): ExperimentListUrlState {
  return { ...view, open: toggled(openGroups(view), key)?.join(',') }
}

/** The next order after a click on a column's name: the better end first, then the other, then the newest first. */
export function nextSort(now: Sort | undefined, ends: readonly [Sort, Sort]): Sort | undefined {
  if (now === ends[0]) return ends[1]
  return now === ends[1] ? undefined : ends[0]
}
