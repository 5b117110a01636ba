import type { MetricSeries } from '@/api/types'
import {
  type ChartData,
  chartData,
  countOf,
  cumulative,
  type Point,
  type Range,
  sharedRange,
  smoothed,
  type Smoothing,
  type Value,
  type XAxis,
} from '@/lib/charts/chart-data'
import type { Mark } from '@/lib/charts/chart-marks'
import { allPositive, positiveRange } from '@/lib/charts/log-scale'
import { byteTick, formatElapsedTick, plainTick } from '@/lib/format'
import { formatMetric, type MetricName, METRICS } from '@/lib/metrics'

/** A chart of one or more metrics with the same unit. */
export interface ChartDefinition {
  testId: string
  title: string
  unit: string
  metrics: [MetricName, ...MetricName[]]
  lines: string[]
  tick: (value: number) => string
  /** The reason for a missing value, if it is worth showing. */
  empty?: string
  log?: boolean
  total?: boolean
}

function kind(name: MetricName, changes: Partial<ChartDefinition> = {}): ChartDefinition {
  const { label, unit } = METRICS[name]
  return { testId: `chart-${name}`, title: label, unit, metrics: [name], lines: [label], tick: plainTick, ...changes }
}

/** Charts of the model's progress. */
export const CONVERGENCE: ChartDefinition[] = [
  kind('train_loss', {
    testId: 'chart-loss',
    title: 'Loss',
    metrics: ['train_loss', 'eval_loss'],
    lines: ['train', 'evaluation'],
    log: true,
    empty: 'the first point is the base model, before round 1',
  }),
  kind('rouge_l', { empty: 'evaluation.generate_examples sets how many answers are scored' }),
  kind('exact_match'),
  kind('bytes_up', {
    testId: 'chart-bytes',
    title: 'Bytes, cumulative',
    unit: 'all participants',
    metrics: ['bytes_up', 'bytes_down'],
    lines: ['sent', 'received'],
    tick: byteTick,
    total: true,
    empty: 'the first point comes with round 1',
  }),
  kind('projection_noise', { title: 'Projection noise', unit: 'percent of the weights' }),
]

/** Charts of the rounds' time and memory. */
export const COST: ChartDefinition[] = [
  kind('local_seconds', {
    testId: 'chart-seconds',
    title: 'Time per round',
    unit: 'one participant, and the server',
    metrics: ['local_seconds', 'aggregate_seconds'],
    lines: ['local update', 'aggregation'],
    tick: formatElapsedTick,
  }),
  kind('sequences_per_second', { title: 'Training speed', unit: 'sequences per second' }),
  kind('peak_memory_bytes', {
    testId: 'chart-memory',
    title: 'Peak memory',
    unit: 'of the training process',
    metrics: ['peak_memory_bytes', 'peak_device_bytes'],
    lines: ['host', 'device'],
    tick: byteTick,
  }),
]

interface PanelData {
  testId: string
  title: string
  unit: string
  lines: readonly string[]
  columns: readonly MetricName[]
  format: (value: number) => string
  tick: (value: number) => string
  data: ChartData
  smooth: Value[][]
  log: boolean
  marks: Mark[]
}

export interface Choices {
  axis: XAxis
  linear: boolean
  logX: boolean
  smoothing: Smoothing | undefined
  /** The visible part of the axis; everything unless given. */
  zoom?: Range | undefined
}

interface Panels {
  panels: PanelData[]
  range: Range
  /** Charts without a value yet, each with the reason. */
  missing: { title: string; why: string }[]
}

/** The charts of an experiment's metrics over the chosen axis, with one x range for all. */
export function chartDataFromSeries(
  kinds: readonly ChartDefinition[],
  series: MetricSeries[],
  start: string,
  choices: Choices,
): Panels {
  const points = (name: string): Point[] => series.find((metric) => metric.name === name)?.points ?? []
  const measured = ({ metrics }: ChartDefinition) => metrics.some((name) => points(name).length > 0)
  const panels = kinds.filter(measured).map((shown) => panelOf(shown, points, start, choices))
  return {
    panels,
    range: rangeOf(
      panels.map(({ data }) => data),
      choices,
    ),
    missing: kinds.flatMap((shown) =>
      shown.empty !== undefined && !measured(shown) ? [{ title: shown.title, why: shown.empty }] : [],
    ),
  }
}

/** The x range of all charts. A logarithmic one begins at the first positive x: the base model, at 0, is left of it. */
function rangeOf(charts: ChartData[], { axis, logX, zoom }: Choices): Range {
  const range = zoom ?? sharedRange(charts, axis)
  if (!logX) return range
  const positive = charts.flatMap(({ x }) => x.filter((value) => value > 0).slice(0, 1))
  return positiveRange(range, Math.min(...positive, range[1]))
}

function panelOf(
  shown: ChartDefinition,
  points: (name: string) => Point[],
  start: string,
  choices: Choices,
): PanelData {
  const { testId, title, unit, lines, metrics, tick, total = false } = shown
  const line = (name: MetricName) => (total ? cumulative(points(name)) : points(name))
  const data = chartData(metrics.map(line), choices.axis, start)
  const { smoothing } = choices
  return {
    ...{ testId, title, unit, lines, columns: metrics, tick, data },
    format: (value) => formatMetric(metrics[0], value),
    log: shown.log === true && !choices.linear && allPositive([...data.lines, ...(data.thinned?.least ?? [])]),
    // A running total is smooth by itself.
    smooth: smoothing === undefined || total ? [] : data.lines.map((values) => smoothed(values, smoothing)),
    marks: total ? [] : metrics.flatMap((name, index) => marksOf(name, index, data)),
  }
}

/** Marks the base model and the best round. Only metrics of the evaluation have a best round. */
function marksOf(name: MetricName, line: number, { rounds, lines, thinned }: ChartData): Mark[] {
  const { better, source } = METRICS[name]
  if (source !== 'evaluation') return []
  const values = lines[line] ?? []
  const ends = (better === 'low' ? thinned?.least : thinned?.greatest)?.[line] ?? values
  const best = better === null || countOf(values) < 2 ? -1 : bestIndex(ends, better)
  const base = rounds.indexOf(0)
  return [
    ...(values[base] == null ? [] : [{ line, index: base, text: 'base' }]),
    ...(best === -1 || best === base ? [] : [{ line, index: best, text: 'best' }]),
  ]
}

export function bestIndex(values: Value[], better: string): number {
  const found = values.filter((value) => value != null)
  return values.indexOf(better === 'low' ? Math.min(...found) : Math.max(...found))
}
