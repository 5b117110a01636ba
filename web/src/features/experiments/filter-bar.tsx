import { useState } from 'react'

import { EXPERIMENT_STATES } from '@/api/types'

import { type Filters, toggleArchived, toggleProject, toggleState } from './filters'

interface Props {
  filters: Filters
  /** Names of those that the user sees. */
  projects: string[]
  onFilters: (change: (filters: Filters) => Filters) => void
}

export function FilterBar({ filters, projects, onFilters }: Props) {
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
      {projects.length > 1 && (
        <div className="toggles" role="group" aria-label="Filter by project">
          {projects.map((project) => (
            <button
              key={project}
              type="button"
              aria-pressed={filters.project === project}
              onClick={() => {
                onFilters((before) => toggleProject(before, project))
              }}
            >
              {project}
            </button>
          ))}
        </div>
      )}
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
