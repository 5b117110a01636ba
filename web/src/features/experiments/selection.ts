import { useState } from 'react'

import type { ListedExperiment } from '@/api/types'

import { experimentsOf, type TableRow } from './table-rows'

/** By id, in the order in which they were ticked, each as it was then. All have a row, or are in a group that has one. */
type Selection = ReadonlyMap<string, ListedExperiment>

export const NOTHING: Selection = new Map()

export function toggled(selection: Selection, experiment: ListedExperiment): Selection {
  return selection.has(experiment.id) ? withoutIds(selection, [experiment.id]) : withAll(selection, [experiment])
}

function withAll(selection: Selection, experiments: readonly ListedExperiment[]): Selection {
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

/** The selection without experiments that have neither a row nor a group with one. */
export function shownOf(selection: Selection, rows: readonly TableRow[]): Selection {
  const ids = new Set(experimentsOf(rows).map(({ id }) => id))
  const groups = new Set(rows.flatMap((row) => (row.kind === 'group' ? [row.group.key] : [])))
  return withoutIds(
    selection,
    [...selection.values()].flatMap(({ id, seed_group: key }) => (ids.has(id) || groups.has(key) ? [] : [id])),
  )
}

/** The selection without experiments that have no visible row: a new filter may hide some of a closed group. */
export function rowsOf(selection: Selection, rows: readonly TableRow[]): Selection {
  return shownOf(
    selection,
    rows.filter(({ kind }) => kind === 'experiment'),
  )
}

/** The selected experiments; those with a row as they are now. */
export function selectedOf(selection: Selection, rows: readonly ListedExperiment[]): ListedExperiment[] {
  return [...selection.values()].map((ticked) => rows.find(({ id }) => id === ticked.id) ?? ticked)
}

/** The selected experiments of the visible rows. `filter` names the filter that is set. */
export function useSelection(table: readonly TableRow[], filter: string) {
  const rows = experimentsOf(table)
  const [selection, setSelection] = useState<Selection>(NOTHING)
  const [filtered, setFiltered] = useState(filter)
  /** Where a range begins: the last one ticked by itself. */
  const [anchor, setAnchor] = useState<string>()
  const shown = filter === filtered ? shownOf(selection, table) : rowsOf(selection, table)
  if (shown.size < selection.size) setSelection(shown)
  if (filter !== filtered) setFiltered(filter)
  const has = (id: string) => selection.has(id)
  return {
    has,
    selected: selectedOf(selection, rows),
    tick: (experiment: ListedExperiment, range: boolean) => {
      setSelection((before) => (range ? withRange(before, rows, anchor, experiment.id) : toggled(before, experiment)))
      setAnchor(experiment.id)
    },
    tickAll: (experiments: readonly ListedExperiment[], on: boolean) => {
      const ids = experiments.map(({ id }) => id)
      setSelection((before) => (on ? withAll(before, experiments) : withoutIds(before, ids)))
    },
    clear: () => {
      setSelection(NOTHING)
      setAnchor(undefined)
    },
  }
}

export type Ticks = ReturnType<typeof useSelection>
