import type { Stat } from './compared-runs'
import { formatDifference, improves, type Metric } from './metric'

interface Props {
  metric: Metric
  value: Stat | undefined
  /** If given, the figure is shown as the difference to this. */
  baseline?: Stat | undefined
}

/** A figure as mean ± deviation of a group, or as its difference to the baseline followed by the figure itself. */
export function FigureValue({ metric, value, baseline }: Props) {
  if (value === undefined) return <span className="muted">–</span>
  if (baseline === undefined) return <Absolute metric={metric} value={value} />
  const difference = value.mean - baseline.mean
  const better = improves(metric, difference)
  return (
    <>
      <span className="difference" data-better={better}>
        {formatDifference(metric, difference)}
        {better !== undefined && <span className="visually-hidden">{better ? ', better' : ', worse'}</span>}
      </span>
      <span className="muted small absolute">
        <Absolute metric={metric} value={value} />
      </span>
    </>
  )
}

function Absolute({ metric, value: { mean, sd } }: { metric: Metric; value: Stat }) {
  return (
    <>
      {metric.format(mean)}
      {sd !== undefined && sd > 0 && <span className="muted"> ± {metric.format(sd)}</span>}
    </>
  )
}
