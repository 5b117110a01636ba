import { useState } from 'react'

import type { ListedExperiment } from '@/api/types'

import { NOTHING, type Selection, selectedOf, toggled, withAll, withoutIds, withRange } from './selection'

/** Which experiments are ticked; `rows` are those that can be seen, in their order. */
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
