import { Link } from '@tanstack/react-router'

import { type ListedExperiment, shownState } from '@/api/types'
import { formatAgo, formatBytes, formatTime } from '@/lib/format'
import { formatMetric, type MetricName } from '@/lib/metrics'
import { RoundProgress } from '@/lib/ui/round-progress'
import { StateChip } from '@/lib/ui/state-chip'

interface Props {
  experiment: ListedExperiment
  /** Whether its project is told: the user sees several. */
  told: boolean
  now: number
  /** Whether it is ticked, to be compared. */
  ticked: boolean
  onTick: () => void
}

export function ExperimentRow({ experiment, told, now, ticked, onTick }: Props) {
  const { id, project, name, algorithm, dataset, round, rounds, created_at: created } = experiment
  return (
    <tr data-testid="experiment-row">
      <td className="cell-tick">
        <input type="checkbox" aria-label={`Compare ${name}`} checked={ticked} onChange={onTick} />
      </td>
      <th scope="row" className="cell-name">
        <Link to="/experiments/$id" params={{ id }} className="row-link">
          {name}
        </Link>
        <span className="muted small">
          {told && `${project} · `}
          {algorithm} · {dataset}
        </span>
      </th>
      <td data-label="State">
        <StateChip state={shownState(experiment)} testId="experiment-state" />
      </td>
      <td data-label="Round">
        <RoundProgress round={round} rounds={rounds} />
      </td>
      <td data-label="Eval loss" className="number">
        <LastAndBest name="eval_loss" metrics={experiment.metrics} />
      </td>
      <td data-label="Rouge-L" className="number">
        <LastAndBest name="rouge_l" metrics={experiment.metrics} />
      </td>
      <td data-label="Bytes per round" className="number">
        <BytesPerRound metrics={experiment.metrics} />
      </td>
      <td data-label="Created">
        <time dateTime={created} title={formatTime(created)}>
          {formatAgo(created, now)}
        </time>
      </td>
    </tr>
  )
}

function LastAndBest({ name, metrics }: { name: MetricName } & Pick<ListedExperiment, 'metrics'>) {
  const found = metrics[name]
  if (found === undefined) return <span className="muted">–</span>
  return (
    <>
      {formatMetric(name, found.last)}
      {found.best !== null && <span className="muted small"> best {formatMetric(name, found.best)}</span>}
    </>
  )
}

/** Of the last committed round, all participants together. */
function BytesPerRound({ metrics: { bytes_up: up, bytes_down: down } }: Pick<ListedExperiment, 'metrics'>) {
  if (up === undefined || down === undefined) return <span className="muted">–</span>
  return (
    <>
      {formatBytes(up.last)} sent
      <span className="muted small"> {formatBytes(down.last)} received</span>
    </>
  )
}
