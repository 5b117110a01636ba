import { useState } from 'react'

import { EXPERIMENT_STATES } from '@/api/types'

import { type Filters, toggleArchived, toggleState } from './filters'

interface Props {
  filters: Filters
  onFilters: (change: (filters: Filters) => Filters) => void
}

export function FilterBar({ filters, onFilters }: Props) {
  // The address follows the typing; it does not steer it, or fast typists would lose letters.
  const [name, setName] = useState(filters.name ?? '')
  const search = (text: string) => {
    setName(text)
    onFilters((before) => ({ ...before, name: text }))
  }

  return (
    <div role="search" className="filter-bar">
      <input
        type="search"
        aria-label="Filter by name"
        placeholder="Filter by name"
        value={name}
        onChange={(event) => {
          search(event.target.value)
        }}
      />
      <div className="toggles" role="group" aria-label="Filter by state">
        {EXPERIMENT_STATES.map((state) => (
          <button
            key={state}
            type="button"
            aria-pressed={filters.state?.includes(state) ?? false}
            onClick={() => {
              onFilters((before) => toggleState(before, state))
            }}
          >
            {state}
          </button>
        ))}
      </div>
      <div className="toggles">
        <button
          type="button"
          aria-pressed={filters.archived === 'only'}
          onClick={() => {
            onFilters(toggleArchived)
          }}
        >
          archived
        </button>
      </div>
    </div>
  )
}
