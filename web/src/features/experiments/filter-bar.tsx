import type { ReactNode } from 'react'

import type { Sort } from '@/api/experiment-list'
import { EXPERIMENT_STATES } from '@/api/types'

import { COLUMNS, SORTS } from './columns'
import { QueryField } from './query-field'
import {
  type ChangeExperimentListUrl,
  type ExperimentListUrlState,
  isFiltered,
  toggleArchived,
  toggleGrouping,
  toggleProject,
  toggleStalled,
  toggleState,
} from './url-state'

interface Props {
  view: ExperimentListUrlState
  /** Names of the projects that the user sees. */
  projects: string[]
  onView: ChangeExperimentListUrl
  onClear: () => void
  /** Content at the end of the bar. */
  children: ReactNode
}

/** Filters and options of the list, all stored in the URL. */
export function FilterBar({ view, projects, onView, onClear, children }: Props) {
  const change = (next: (view: ExperimentListUrlState) => ExperimentListUrlState) => () => {
    onView(next)
  }
  return (
    <div role="search" className="filter-bar">
      <QueryField view={view} onView={onView} />
      <div className="toggles" role="group" aria-label="Filter by state">
        {EXPERIMENT_STATES.map((state) => (
          <Toggle
            key={state}
            label={state}
            on={view.state?.includes(state) ?? false}
            onToggle={change((before) => toggleState(before, state))}
          />
        ))}
        <Toggle label="stalled" on={view.stalled === 'only'} onToggle={change(toggleStalled)} />
        <Toggle label="archived" on={view.archived === 'only'} onToggle={change(toggleArchived)} />
      </div>
      {projects.length > 1 && (
        <div className="toggles" role="group" aria-label="Filter by project">
          {projects.map((project) => (
            <Toggle
              key={project}
              label={project}
              on={view.project === project}
              onToggle={change((before) => toggleProject(before, project))}
            />
          ))}
        </div>
      )}
      <div className="filter-end">
        {isFiltered(view) && (
          <button type="button" className="button quiet" onClick={onClear}>
            Clear filters
          </button>
        )}
        <div className="toggles">
          <Toggle label="group seeds" on={view.group === 'seed'} onToggle={change(toggleGrouping)} />
        </div>
        {children}
      </div>
    </div>
  )
}

function Toggle({ label, on, onToggle }: { label: string; on: boolean; onToggle: () => void }) {
  return (
    <button type="button" aria-pressed={on} onClick={onToggle}>
      {label}
    </button>
  )
}

interface SortFieldProps {
  sort: Sort | undefined
  onSort: (sort: Sort | undefined) => void
}

/** The order, for screens that have no row of column names. */
export function SortField({ sort, onSort }: SortFieldProps) {
  return (
    <label className="sort-field">
      <span className="muted small">Sort</span>
      <select
        value={sort ?? ''}
        onChange={({ target: { value } }) => {
          onSort(SORTS.find((known) => known === value))
        }}
      >
        <option value="">Newest first</option>
        <SortOptions label="Name" sorts={['name', '-name']} />
        {COLUMNS.map(({ id, label, sorts }) => sorts && <SortOptions key={id} label={label} sorts={sorts} />)}
      </select>
    </label>
  )
}

function SortOptions({ label, sorts }: { label: string; sorts: readonly [Sort, Sort] }) {
  return sorts.map((sort) => (
    <option key={sort} value={sort}>
      {label} {sort.startsWith('-') ? '↓' : '↑'}
    </option>
  ))
}
