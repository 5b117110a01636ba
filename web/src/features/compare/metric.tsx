import type { MetricSeries } from '@/api/types'
import { formatMetric, type MetricName, METRICS } from '@/lib/metrics'

import type { Stat } from './compared-runs'

/** Which way is better, as the catalog of metrics has it. */
export type Better = 'low' | 'high'

/** A series that can be chosen: a metric of the catalog, or one label's or block's share of it (`eval_loss/LABEL`). */
export interface Metric {
  name: string
  label: string
  unit: string
  /** Undefined where no value is better than another, as with bytes. */
  better: Better | undefined
  format: (value: number) => string
}

/** The metric of a series, by its name. */
export function metricOf(name: string): Metric {
  const slash = name.indexOf('/')
  const base = slash < 0 ? name : name.slice(0, slash)
  if (!isMetric(base)) return { name, label: name, unit: '', better: undefined, format: String }
  const { label, unit, better } = METRICS[base]
  return {
    name,
    label: slash < 0 ? label : `${label}: ${name.slice(slash + 1)}`,
    unit,
    better: better === 'low' || better === 'high' ? better : undefined,
    format: (value) => formatMetric(base, value),
  }
}

function isMetric(name: string): name is MetricName {
  return Object.hasOwn(METRICS, name)
}

/** The metrics of a model's quality, which researchers compare first. */
export const QUALITY = ['eval_loss', 'rouge_l', 'rouge_l_paper', 'exact_match', 'train_loss']

/** Names of all series that some run has, quality first, then as the catalog has them, labels last. */
export function metricNames(runs: readonly { series: readonly MetricSeries[] }[]): string[] {
  const names = new Set(
    runs.flatMap(({ series }) => series.filter(({ points }) => points.length > 0)).map(({ name }) => name),
  )
  const order = [...new Set([...QUALITY, ...Object.keys(METRICS)])]
  const known = order.filter((name) => names.delete(name))
  return [...known, ...[...names].sort()]
}

/** A difference with its sign: "−0.061", "+3.2 %", "±0". */
export function formatDifference(metric: Metric, difference: number): string {
  if (difference === 0) return '±0'
  return `${difference > 0 ? '+' : '−'}${metric.format(Math.abs(difference))}`
}

/** True if a difference to the baseline is an improvement; undefined for a metric without a better end. */
export function improves({ better }: Metric, difference: number): boolean | undefined {
  if (better === undefined || difference === 0) return undefined
  return better === 'high' ? difference > 0 : difference < 0
}

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
