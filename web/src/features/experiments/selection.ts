import { useState } from 'react'

import type { ListedExperiment } from '@/api/types'

/** By id, in the order in which they were ticked, each as it was then. They stay when a filter hides their rows. */
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

/** The selected experiments; those with a row as they are now. */
export function selectedOf(selection: Selection, rows: readonly ListedExperiment[]): ListedExperiment[] {
  return [...selection.values()].map((ticked) => rows.find(({ id }) => id === ticked.id) ?? ticked)
}

/** The selected experiments; `rows` are the visible ones, in their order. */
export function useSelection(rows: readonly ListedExperiment[]) {
  const [selection, setSelection] = useState<Selection>(NOTHING)
  /** Where a range begins: the last one ticked by itself. */
  const [anchor, setAnchor] = useState<string>()
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
