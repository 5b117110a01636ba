import type { MetricSeries } from '@/api/types'
import {
  type ChartData,
  chartData,
  countOf,
  cumulative,
  type Point,
  type Range,
  sharedRange,
  type Value,
  type XAxis,
} from '@/lib/charts/chart-data'
import type { Mark } from '@/lib/charts/chart-marks'
import { allPositive } from '@/lib/charts/log-scale'
import { smoothed, type Smoothing } from '@/lib/charts/smoothing'
import { formatMetric, type MetricName, METRICS } from '@/lib/metrics'

import type { ChartDefinition } from './chart-definitions'

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
  smoothing: Smoothing | undefined
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
    range: sharedRange(
      panels.map(({ data }) => data),
      choices.axis,
    ),
    missing: kinds.flatMap((shown) =>
      shown.empty !== undefined && !measured(shown) ? [{ title: shown.title, why: shown.empty }] : [],
    ),
  }
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
