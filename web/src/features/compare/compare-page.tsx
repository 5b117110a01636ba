import { isAway } from '@/api/problem'
import './compare.css'

import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'

import { isFinished } from '@/api/types'
import { zoomRange } from '@/lib/charts/zoom'
import { Notice } from '@/lib/ui/notice'
import { Switch } from '@/lib/ui/toggles'
import { useTitle } from '@/lib/use-title'

import { AddRun } from './add-run'
import { baselineOf, entriesOf, type Run } from './compared-runs'
import { FrontierSection } from './frontier-section'
import { metricNames, metricOf } from './metric'
import { OverlaySection } from './overlay-section'
import { RunsSection } from './runs-section'
import { TableSection } from './table-section'
import { chosenRuns, type CompareUrlState, isHidden, MOST_RUNS, withoutRun, withRun } from './url-state'
import { type Missing, pollMilliseconds, useRuns } from './use-runs'

interface Props {
  view: CompareUrlState
  onView: (change: (view: CompareUrlState) => CompareUrlState) => void
}

/** Experiments side by side: their curves, what they cost, how their specifications differ. */
export function ComparePage({ view, onView }: Props) {
  useTitle('Compare')
  const { chosen, over } = useMemo(() => chosenRuns(view.ids), [view.ids])
  const zoom = useMemo(() => zoomRange(view.span), [view.span])
  const { runs, missing, pending } = useRuns(chosen, view.x ?? 'round', zoom)
  const add = (id: string) => {
    onView((before) => withRun(before, id))
  }
  return (
    <main className="page compare">
      <header className="page-header">
        <h1>Compare</h1>
        <AddRun open={chosen.length < 2} taken={chosen.map(({ id }) => id)} onAdd={add} />
      </header>
      {over.length > 0 && <TooManyNotice over={over} />}
      {missing.length > 0 && (
        <MissingNotice
          missing={missing}
          onRemove={(id) => {
            onView((before) => withoutRun(before, id))
          }}
        />
      )}
      {chosen.length === 0 && <Nothing />}
      {pending && (
        <p className="muted small" role="status">
          Fetching…
        </p>
      )}
      {runs.length > 0 && <Compared runs={runs} view={view} onView={onView} />}
    </main>
  )
}

function Nothing() {
  return (
    <section className="empty">
      <h2>Nothing to compare yet</h2>
      <p className="muted">
        Select rows in the <Link to="/">list of experiments</Link>, or find experiments by name above.
      </p>
    </section>
  )
}

function Compared({ runs, view, onView }: Props & { runs: readonly Run[] }) {
  const grouped = view.groups === 'seeds'
  const entries = useMemo(() => entriesOf(runs, grouped), [runs, grouped])
  const groupable = useMemo(() => entriesOf(runs, true).length < runs.length, [runs])
  const names = useMemo(() => metricNames(runs), [runs])
  const name = view.metric ?? names[0] ?? 'eval_loss'
  const metric = useMemo(() => metricOf(name), [name])
  const shown = useMemo(
    () => entries.filter(({ key }) => !isHidden({ hidden: view.hidden }, key)),
    [entries, view.hidden],
  )
  const baseline = baselineOf(entries, view.baseline)
  const parts = { metric, view, onView }
  return (
    <>
      <OverlaySection entries={shown} names={names} {...parts} />
      <section aria-labelledby="compare-legend">
        <header className="section-header">
          <h2 id="compare-legend">{runs.length === 1 ? 'One run' : `${runs.length} runs`}</h2>
          <Live runs={runs} />
          {(groupable || grouped) && (
            <Switch
              label="mean ± sd over seeds"
              on={grouped}
              onToggle={() => {
                onView((before) => ({ ...before, groups: before.groups === 'seeds' ? undefined : 'seeds' }))
              }}
            />
          )}
        </header>
        <RunsSection entries={entries} baseline={baseline} {...parts} />
      </section>
      <FrontierSection entries={shown} {...parts} />
      <TableSection entries={entries} baseline={baseline} view={view} onView={onView} />
    </>
  )
}

function Live({ runs }: { runs: readonly Run[] }) {
  const unfinished = runs.filter(({ experiment }) => !isFinished(experiment.state)).length
  if (unfinished === 0) return null
  return (
    <p className="muted small" data-testid="compare-live">
      {unfinished} unfinished, refreshed every {pollMilliseconds(runs.length) / 1000} s
    </p>
  )
}

/** The address names what cannot be shown. */
function MissingNotice({ missing, onRemove }: { missing: readonly Missing[]; onRemove: (id: string) => void }) {
  return (
    <Notice
      title={missing.length === 1 ? 'One run is missing' : `${missing.length} runs are missing`}
      testId="compare-missing"
    >
      <ul className="compare-missing">
        {missing.map(({ id, problem }) => (
          <li key={id}>
            <code>{id}</code>{' '}
            {problem.status === 404 || problem.status === 403
              ? 'does not exist, or belongs to a project that you are not in.'
              : `${problem.title}${isAway(problem) ? '. This page keeps trying.' : '.'}`}
            <button
              type="button"
              className="button small"
              aria-label={`Remove ${id}`}
              onClick={() => {
                onRemove(id)
              }}
            >
              Remove
            </button>
          </li>
        ))}
      </ul>
    </Notice>
  )
}

function TooManyNotice({ over }: { over: readonly string[] }) {
  return (
    <Notice title={`The first ${MOST_RUNS} runs are shown`} testId="compare-over">
      <p>
        More lines would be hard to distinguish. {over.length === 1 ? 'One is' : `${over.length} are`} left out:{' '}
        <code>{over.join(', ')}</code>
      </p>
    </Notice>
  )
}
