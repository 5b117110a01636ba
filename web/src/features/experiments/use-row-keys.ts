import type { ListedExperiment } from '@/api/types'
import { useShortcuts } from '@/lib/keyboard'

import type { Ticks } from './selection'

/** j and k move through the rows, x ticks the one with the focus, X all from the last one ticked to it. */
export function useRowKeys(rows: readonly ListedExperiment[], ticks: Ticks): void {
  const tick = (range: boolean) => {
    const id = focusedRow()?.dataset.row
    const experiment = rows.find((row) => row.id === id)
    if (experiment) ticks.tick(experiment, range)
  }
  useShortcuts({
    j: () => {
      moveFocus(1)
    },
    k: () => {
      moveFocus(-1)
    },
    x: () => {
      tick(false)
    },
    X: () => {
      tick(true)
    },
  })
}

function focusedRow(): HTMLElement | null {
  return document.activeElement?.closest<HTMLElement>('.experiments tbody tr') ?? null
}

/** To the row below or above, or to the first where none has the focus. */
function moveFocus(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>('.experiments tbody tr')]
  const now = rows.findIndex((row) => row === focusedRow())
  const next = now < 0 ? rows[0] : rows[now + by]
  next?.querySelector<HTMLElement>('.cell-name :is(a, button)')?.focus()
}
