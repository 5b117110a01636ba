import { useId, useRef } from 'react'

import { placeBelow } from '@/lib/ui/more-menu'

import { COLUMNS } from './columns'

interface Props {
  shown: readonly string[]
  /** Undefined restores the default columns. */
  onChoose: (ids: string[] | undefined) => void
}

/** A menu of checkboxes that chooses the columns. */
export function ColumnMenu({ shown, onChoose }: Props) {
  const menu = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  const id = useId()
  return (
    <div className="column-menu">
      <button ref={button} type="button" className="button" popoverTarget={id}>
        Columns <span aria-hidden>▾</span>
      </button>
      <div
        ref={menu}
        id={id}
        popover="auto"
        role="group"
        aria-label="Columns"
        onToggle={() => {
          if (button.current && menu.current) placeBelow(button.current, menu.current)
        }}
      >
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
      </div>
    </div>
  )
}

function withOrWithout(shown: readonly string[], id: string): string[] {
  return shown.includes(id) ? shown.filter((other) => other !== id) : [...shown, id]
}
