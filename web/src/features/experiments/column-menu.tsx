import { useEffect } from 'react'

import type { ListedExperiment } from '@/api/types'
import { PopoverMenu } from '@/lib/ui/popover-menu'

import { chosenColumns, type Column, COLUMNS, columnsOf, usualColumns } from './columns'
import type { ChangeExperimentListUrl, ExperimentListUrlState } from './url-state'

interface Props {
  shown: readonly string[]
  /** Undefined restores the default columns. */
  onChoose: (ids: string[] | undefined) => void
}

/** A menu of checkboxes that chooses the columns. */
export function ColumnMenu({ shown, onChoose }: Props) {
  return (
    <PopoverMenu title="Columns" label="Columns">
      {COLUMNS.map((column) => (
        <label key={column.id}>
          <input
            type="checkbox"
            checked={shown.includes(column.id)}
            // One column always stays: an empty list would mean the defaults.
            disabled={shown.length === 1 && shown.includes(column.id)}
            onChange={() => {
              onChoose(withOrWithout(shown, column.id))
            }}
          />
          {column.label}
        </label>
      ))}
      <button
        type="button"
        className="button quiet"
        onClick={() => {
          onChoose(undefined)
        }}
      >
        Default columns
      </button>
    </PopoverMenu>
  )
}

function withOrWithout(shown: readonly string[], id: string): string[] {
  return shown.includes(id) ? shown.filter((other) => other !== id) : [...shown, id]
}

/** The URL's columns, else the ones stored in this browser, else the defaults. */
export function useColumns(
  view: ExperimentListUrlState,
  rows: readonly ListedExperiment[],
  projects: number,
  onView: ChangeExperimentListUrl,
) {
  const { columns: named } = view
  // Remembered columns go into the address, so that a link shows the same columns.
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

const KEY = 'ferret.columns'

/** The columns that this browser remembers; undefined for the defaults. */
function rememberedColumns(): string[] | undefined {
  try {
    return chosenColumns(window.localStorage.getItem(KEY) ?? undefined)
  } catch {
    return undefined // a browser that keeps nothing for this site
  }
}

/** Undefined restores the default columns. */
function rememberColumns(ids: readonly string[] | undefined): void {
  try {
    if (ids === undefined) window.localStorage.removeItem(KEY)
    else window.localStorage.setItem(KEY, ids.join(','))
  } catch {
    // The address still holds them.
  }
}
