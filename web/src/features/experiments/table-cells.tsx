import type { ReactNode } from 'react'

import { type ListedExperiment, shownState } from '@/api/types'
import { formatBytes, formatCount, formatSeconds } from '@/lib/format'
import { formatMetric } from '@/lib/metrics'
import { RelativeTime } from '@/lib/ui/relative-time'
import { RoundProgress } from '@/lib/ui/round-progress'
import { StateChip } from '@/lib/ui/state-chip'

import type { Column } from './columns'

export interface CellContext {
  now: number
  /** The tags that are filtered by. */
  tags: readonly string[]
  onTag: (tag: string) => void
}

/** A cell of the table, with a dash if it is empty. */
export function Cell({ column, children }: { column: Column; children: ReactNode }) {
  const empty = children === undefined || children === null || children === false
  return (
    <td data-label={column.label} className={column.number ? 'number' : undefined}>
      {empty ? <span className="muted">–</span> : children}
    </td>
  )
}

/** An experiment's value in a column; undefined or false without a value. */
export function experimentCell(column: Column, experiment: ListedExperiment, context: CellContext): ReactNode {
  if (column.metric) {
    const { name, of } = column.metric
    const measured = experiment.metrics[name]
    const value = measured?.[of] ?? undefined
    if (value === undefined) return undefined
    return <span title={`Best: ${formatMetric(name, measured?.best ?? undefined)}`}>{formatMetric(name, value)}</span>
  }
  return CELLS[column.id]?.(experiment, context)
}

const CELLS: Record<string, (experiment: ListedExperiment, context: CellContext) => ReactNode> = {
  state: (experiment) => <State experiment={experiment} />,
  round: ({ round, rounds }) => <RoundProgress round={round} rounds={rounds} />,
  project: ({ project }) => project,
  algorithm: ({ algorithm }) => algorithm,
  dataset: ({ dataset }) => dataset,
  participants: ({ participants }) => formatCount(participants),
  K: ({ K, bytes_per_round: bytes }) =>
    K === null ? bytes !== null && `${formatBytes(bytes)} a round` : formatCount(K),
  learning_rate: ({ learning_rate: rate }) => rate !== null && String(Number(rate.toPrecision(3))),
  seed: ({ seed }) => String(seed),
  bytes_per_upload: ({ bytes_per_upload: bytes }) => bytes !== null && formatBytes(bytes),
  bytes_up: ({ bytes_up: bytes }) => bytes > 0 && formatBytes(bytes),
  bytes_down: ({ bytes_down: bytes }) => bytes > 0 && formatBytes(bytes),
  left: ({ estimated_seconds_left: seconds }) => seconds !== null && `≈ ${formatSeconds(seconds)}`,
  tags: ({ tags }, context) => tags.length > 0 && <Tags tags={tags} context={context} />,
  created: ({ created_at: created }, { now }) => <RelativeTime at={created} now={now} />,
  finished: ({ finished_at: finished }, { now }) => finished !== null && <RelativeTime at={finished} now={now} />,
}

/** The state, followed by the reason of a failure. */
function State({ experiment }: { experiment: ListedExperiment }) {
  const { error } = experiment
  return (
    <span className="state-cell">
      <StateChip state={shownState(experiment)} testId="experiment-state" />
      {error && (
        <span className="row-reason" title={`${error.title} (${error.code})`}>
          {error.title}
        </span>
      )}
    </span>
  )
}

function Tags({ tags, context }: { tags: readonly string[]; context: CellContext }) {
  return (
    <span className="row-tags">
      {tags.map((tag) => (
        <button
          key={tag}
          type="button"
          className="tag"
          aria-pressed={context.tags.includes(tag)}
          title={`Filter by ${tag}`}
          onClick={() => {
            context.onTag(tag)
          }}
        >
          {tag}
        </button>
      ))}
    </span>
  )
}
