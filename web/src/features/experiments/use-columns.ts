import { useEffect } from 'react'

import type { ListedExperiment } from '@/api/types'

import { type Column, columnsOf, usualColumns } from './columns'
import { rememberColumns, rememberedColumns } from './remembered-columns'
import type { ChangeView, View } from './url-state'

/** The columns that the address names, else those that this browser remembers, else the usual ones. */
export function useColumns(view: View, rows: readonly ListedExperiment[], projects: number, onView: ChangeView) {
  const { columns: named } = view
  // What is remembered goes into the address, so that a link to it shows the same.
  useEffect(() => {
    const remembered = rememberedColumns()
    if (named === undefined && remembered) onView((before) => ({ ...before, columns: remembered.join(',') }))
    // eslint-disable-next-line react-hooks/exhaustive-deps -- once: choosing the usual columns empties the address
  }, [])
  const ids = named?.split(',') ?? usualColumns(rows, projects)
  const choose = (chosen: string[] | undefined) => {
    const kept = chosen && columnsOf(chosen).map(({ id }) => id)
    rememberColumns(kept)
    onView((before) => ({ ...before, columns: kept?.join(',') }))
  }
  return { ids, columns: columnsOf(ids) as readonly Column[], choose }
}
