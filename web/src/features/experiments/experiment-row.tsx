import { Link } from '@tanstack/react-router'

import { type Experiment, shownState } from '@/api/types'
import { formatAgo, formatBytes, formatLoss, formatPercent, formatTime } from '@/lib/format'
import { RoundProgress } from '@/lib/ui/round-progress'
import { StateChip } from '@/lib/ui/state-chip'

interface Props {
  experiment: Experiment
  now: number
}

export function ExperimentRow({ experiment, now }: Props) {
  const { id, name, algorithm, dataset, round, rounds, created_at: created } = experiment
  return (
    <tr data-testid="experiment-row">
      <th scope="row" className="cell-name">
        <Link to="/experiments/$id" params={{ id }} className="row-link">
          {name}
        </Link>
        <span className="muted small">
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
        <LastAndBest metric={experiment.metrics.eval_loss} format={formatLoss} />
      </td>
      <td data-label="Rouge-L" className="number">
        <LastAndBest metric={experiment.metrics.rouge_l} format={formatPercent} />
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

interface LastAndBestProps {
  metric: { last: number; best: number } | undefined
  format: (value: number) => string
}

function LastAndBest({ metric, format }: LastAndBestProps) {
  if (metric === undefined) return <span className="muted">–</span>
  return (
    <>
      {format(metric.last)}
      <span className="muted small"> best {format(metric.best)}</span>
    </>
  )
}

/** Of the last committed round, all participants together. */
function BytesPerRound({ metrics: { bytes_up: up, bytes_down: down } }: Pick<Experiment, 'metrics'>) {
  if (up === undefined || down === undefined) return <span className="muted">–</span>
  return (
    <>
      {formatBytes(up.last)} sent
      <span className="muted small"> {formatBytes(down.last)} received</span>
    </>
  )
}
