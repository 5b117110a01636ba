import type { ListedExperiment } from '@/api/types'

/** By id, in the order in which they were ticked, each as it was then. They stay when a filter hides their rows. */
export type Selection = ReadonlyMap<string, ListedExperiment>

export const NOTHING: Selection = new Map()

export function toggled(selection: Selection, experiment: ListedExperiment): Selection {
  return selection.has(experiment.id) ? withoutIds(selection, [experiment.id]) : withAll(selection, [experiment])
}

export function withAll(selection: Selection, experiments: readonly ListedExperiment[]): Selection {
  return new Map([...selection, ...experiments.map((experiment) => [experiment.id, experiment] as const)])
}

export function withoutIds(selection: Selection, ids: readonly string[]): Selection {
  return new Map([...selection].filter(([id]) => !ids.includes(id)))
}

/** With the rows from `from` to `to`, both included and in either direction; with `to` alone where `from` has no row. */
export function withRange(
  selection: Selection,
  rows: readonly ListedExperiment[],
  from: string | undefined,
  to: string,
): Selection {
  const last = rows.findIndex(({ id }) => id === to)
  const first = rows.findIndex(({ id }) => id === from)
  const [begin, end] = first < 0 ? [last, last] : [Math.min(first, last), Math.max(first, last)]
  return withAll(selection, rows.slice(begin, end + 1))
}

/** Those ticked, as they are now where they have a row. */
export function selectedOf(selection: Selection, rows: readonly ListedExperiment[]): ListedExperiment[] {
  return [...selection.values()].map((ticked) => rows.find(({ id }) => id === ticked.id) ?? ticked)
}
