import { type ReactNode, useState } from 'react'

import { EXPERIMENT_STATES } from '@/api/types'

import {
  type ChangeExperimentListUrl,
  type ExperimentListUrlState,
  isFiltered,
  toggleArchived,
  toggleGrouping,
  toggleProject,
  toggleState,
  toggleTag,
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
      <NameField name={view.name} onView={onView} />
      <div className="toggles" role="group" aria-label="Filter by state">
        {EXPERIMENT_STATES.map((state) => (
          <Toggle
            key={state}
            label={state}
            on={view.state?.includes(state) ?? false}
            onToggle={change((before) => toggleState(before, state))}
          />
        ))}
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
      {view.tag && (
        <div className="toggles" role="group" aria-label="Filter by tag">
          {view.tag.map((tag) => (
            <Toggle key={tag} label={`${tag} ×`} on onToggle={change((before) => toggleTag(before, tag))} />
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

/** The address follows the typed text but never changes it, or fast typists would lose letters. */
function NameField({ name, onView }: { name: string | undefined; onView: ChangeExperimentListUrl }) {
  const [text, setText] = useState(name ?? '')
  return (
    <input
      type="search"
      aria-label="Filter by name"
      placeholder="Filter by name"
      value={text}
      onChange={({ target: { value } }) => {
        setText(value)
        onView((before) => ({ ...before, name: value === '' ? undefined : value }))
      }}
    />
  )
}
