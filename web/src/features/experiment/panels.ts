import type { MetricSeries } from '@/api/types'
import { type ChartData, chartData, cumulative, type Point, sharedRange, type XAxis } from '@/lib/chart-data'
import { formatBytes } from '@/lib/format'
import { formatMetric, type MetricName, METRICS } from '@/lib/metrics'

export interface PanelData {
  testId: string
  title: string
  yLabel: string
  lines: readonly string[]
  format: (value: number) => string
  tick: (value: number) => string
  empty: string
  data: ChartData
}

function plainTick(value: number): string {
  return String(Number(value.toPrecision(4)))
}

function panel(name: MetricName, empty: string) {
  const { label, unit } = METRICS[name]
  return {
    testId: `chart-${name}`,
    title: label,
    yLabel: unit,
    metrics: [name] as MetricName[],
    lines: [label],
    format: (value: number) => formatMetric(name, value),
    tick: plainTick,
    empty,
    optional: false,
  }
}

const PANELS = [
  panel('train_loss', 'The first point comes with round 1.'),
  panel('eval_loss', 'The first point is the base model, before round 1.'),
  panel('rouge_l', 'Not measured yet; evaluation.generate sets how many answers are scored.'),
  { ...panel('exact_match', ''), optional: true },
  { ...panel('weight_noise', ''), title: 'Noise of the projection', yLabel: 'percent of the weights', optional: true },
  {
    ...panel('bytes_up', 'The first point comes with round 1.'),
    testId: 'chart-bytes',
    title: 'Bytes, cumulative',
    yLabel: 'all participants',
    metrics: ['bytes_up', 'bytes_down'] as MetricName[],
    lines: ['sent', 'received'],
    tick: formatBytes,
  },
]

/** The panels of an experiment, over the axis asked for and with one x range for all; optional ones if there is data. */
export function experimentPanels(series: MetricSeries[], axis: XAxis, start: string) {
  const points = (name: string): Point[] => series.find((metric) => metric.name === name)?.points ?? []
  const shown = PANELS.filter(({ optional, metrics }) => !optional || metrics.some((name) => points(name).length))
  const panels = shown.map(({ metrics, ...panel }): PanelData => {
    const total = panel.testId === 'chart-bytes' ? cumulative : (line: Point[]) => line
    return {
      ...panel,
      data: chartData(
        metrics.map((name) => total(points(name))),
        axis,
        start,
      ),
    }
  })
  return {
    panels,
    range: sharedRange(
      panels.map((panel) => panel.data),
      axis,
    ),
  }
}
