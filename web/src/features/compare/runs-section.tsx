import { Link } from '@tanstack/react-router'

import { shownState } from '@/api/types'
import { StateChip } from '@/lib/ui/state-chip'
import { TableHead } from '@/lib/ui/table-head'

import type { Entry } from './compared-runs'
import { FigureValue, type Metric } from './metric'
import { Swatch } from './palette'
import { bestOf, lastOf, statsOf } from './result-cells'
import { type CompareUrlState, isHidden, toggleHidden, withoutRun } from './url-state'

interface Props {
  entries: readonly Entry[]
  metric: Metric
  baseline: Entry | undefined
  view: CompareUrlState
  onView: (change: (view: CompareUrlState) => CompareUrlState) => void
}

/** The legend: each run with its line, its state and its buttons. */
export function RunsSection({ entries, metric, baseline, view, onView }: Props) {
  const last = statsOf(entries, (run) => lastOf(run, metric.name))
  const best = statsOf(entries, (run) => bestOf(run, metric))
  const base = entries.findIndex((entry) => entry === baseline)
  const columns = ['Run', 'State', 'Round', `${metric.label}, last`, 'best', 'Baseline', '']
  return (
    <div className="compare-scroll" tabIndex={0} role="group" aria-label="Runs">
      <table className="compare-runs" data-testid="compare-runs">
        <TableHead columns={columns} />
        <tbody>
          {entries.map((entry, index) => {
            const other = entry === baseline ? -1 : base
            return (
              <tr key={entry.key} data-testid="compare-run" data-hidden={isHidden(view, entry.key)}>
                <th scope="row">
                  <Name entry={entry} view={view} onView={onView} />
                </th>
                <td>
                  <States entry={entry} />
                </td>
                <td className="number">{rounds(entry)}</td>
                <td className="number">
                  <FigureValue metric={metric} value={last[index]} baseline={last[other]} />
                </td>
                <td className="number">
                  <FigureValue metric={metric} value={best[index]} baseline={best[other]} />
                </td>
                <td>
                  <Pin entry={entry} pinned={entry === baseline} onView={onView} />
                </td>
                <td>
                  <Remove entry={entry} onView={onView} />
                </td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}

function rounds({ runs }: Entry): string {
  return [...new Set(runs.map(({ experiment: { round, rounds } }) => `${round} / ${rounds}`))].join(', ')
}

function Name({ entry, view, onView }: { entry: Entry } & Pick<Props, 'view' | 'onView'>) {
  return (
    <span className="compare-name">
      <input
        type="checkbox"
        aria-label={`Show ${entry.label}`}
        checked={!isHidden(view, entry.key)}
        onChange={() => {
          onView((before) => toggleHidden(before, entry.key))
        }}
      />
      <Swatch place={entry.place} />
      <Link to="/experiments/$id" params={{ id: entry.key }}>
        {entry.label}
      </Link>
    </span>
  )
}

function States({ entry: { runs } }: { entry: Entry }) {
  const states = [...new Set(runs.map(({ experiment }) => shownState(experiment)))]
  return (
    <span className="compare-states">
      {states.map((state) => (
        <StateChip key={state} state={state} />
      ))}
    </span>
  )
}

function Pin({ entry, pinned, onView }: { entry: Entry; pinned: boolean } & Pick<Props, 'onView'>) {
  return (
    <button
      type="button"
      className="button small"
      aria-pressed={pinned}
      aria-label={pinned ? `pinned: ${entry.label} is the baseline` : `pin ${entry.label} as the baseline`}
      onClick={() => {
        onView((before) => ({ ...before, baseline: pinned ? undefined : entry.key }))
      }}
    >
      {pinned ? 'pinned' : 'pin'}
    </button>
  )
}

function Remove({ entry, onView }: { entry: Entry } & Pick<Props, 'onView'>) {
  return (
    <button
      type="button"
      className="button quiet small"
      aria-label={`Remove ${entry.label}`}
      onClick={() => {
        onView((before) => entry.runs.reduce((view, { id }) => withoutRun(view, id), before))
      }}
    >
      ✕
    </button>
  )
}
