import type { MetricSeries } from '@/api/types'
import { type ChartData, chartData, cumulative, type Point, sharedRange, type XAxis } from '@/lib/chart-data'
import { formatBytes, formatLoss, formatPercent } from '@/lib/format'

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

const PANELS = [
  {
    testId: 'chart-train_loss',
    title: 'Train loss',
    yLabel: 'nats per token',
    metrics: ['train_loss'],
    lines: ['Train loss'],
    format: formatLoss,
    tick: plainTick,
    empty: 'The first point comes with round 1.',
  },
  {
    testId: 'chart-eval_loss',
    title: 'Evaluation loss',
    yLabel: 'nats per token',
    metrics: ['eval_loss'],
    lines: ['Evaluation loss'],
    format: formatLoss,
    tick: plainTick,
    empty: 'The first point is the base model, before round 1.',
  },
  {
    testId: 'chart-rouge_l',
    title: 'Rouge-L',
    yLabel: 'percent',
    metrics: ['rouge_l'],
    lines: ['Rouge-L'],
    format: formatPercent,
    tick: plainTick,
    empty: 'Not measured yet; evaluation.generate sets how many answers are scored.',
  },
  {
    testId: 'chart-exact_match',
    title: 'Exact match',
    yLabel: 'percent',
    metrics: ['exact_match'],
    lines: ['Exact match'],
    format: formatPercent,
    tick: plainTick,
    empty: '',
    optional: true,
  },
  {
    testId: 'chart-bytes',
    title: 'Bytes, cumulative',
    yLabel: 'all participants',
    metrics: ['bytes_up', 'bytes_down'],
    lines: ['sent', 'received'],
    format: formatBytes,
    tick: formatBytes,
    empty: 'The first point comes with round 1.',
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
