import type { Experiment, MetricSeries, Round } from '@/api/types'
import { sumOf } from '@/lib/charts/chart-data'
import { formatMetric, type MetricName, METRICS } from '@/lib/metrics'

export interface Change {
  label: string
  /** The base model's value; undefined before the first round's. */
  from: string | undefined
  to: string
  /** The best round's, where it is not the last. */
  best: string | undefined
}

/** The score of the answers and the loss, from the base model to now. */
export function changes(metrics: Experiment['metrics'], round: number): Change[] {
  const score = (['exact_match', 'rouge_l'] as const).find((name) => metrics[name] !== undefined)
  return [...(score ? [score] : []), 'eval_loss' as const].flatMap((name) => {
    const found = metrics[name]
    if (found === undefined) return []
    const { first, last, best } = found
    return [
      {
        label: METRICS[name].label,
        from: round > 0 ? withoutUnit(name, first) : undefined,
        to: formatMetric(name, last),
        best: best === null || best === last || round === 0 ? undefined : formatMetric(name, best),
      },
    ]
  })
}

/** "27.4" of "27.4 %": the unit follows once, after the arrow. */
function withoutUnit(name: MetricName, value: number): string {
  return formatMetric(name, value).replace(' %', '')
}

const FP32_BYTES = 4

export interface UploadCost {
  /** Bytes of one participant's contribution, the mean of all that counted. */
  perUpload: number
  /** Numbers that FedAvg would send, each as fp32; undefined before the model is loaded. */
  numbers: number | undefined
  allWeights: number | undefined
  ratio: number | undefined
}

/** The size of one upload compared with sending all weights, counted as in docs/researchers/metrics.md. */
export function uploadCost(rounds: Round[], shapes: Experiment['shapes'] | undefined): UploadCost | undefined {
  const counted = rounds.filter((round) => round.committed_at !== null && round.accepted > 0)
  const uploads = counted.reduce((sum, { accepted }) => sum + accepted, 0)
  const bytes = counted.reduce((sum, { bytes_up: up }) => sum + up, 0)
  if (uploads === 0 || bytes === 0) return undefined
  const numbers = shapes ? numbersOf(shapes) : undefined
  const allWeights = numbers === undefined ? undefined : numbers * FP32_BYTES
  const perUpload = bytes / uploads
  return { perUpload, numbers, allWeights, ratio: allWeights === undefined ? undefined : allWeights / perUpload }
}

function numbersOf(shapes: Record<string, number[]>): number {
  return Object.values(shapes).reduce((sum, shape) => sum + shape.reduce((product, side) => product * side, 1), 0)
}

export interface Traffic {
  sent: number
  received: number
  /** Bytes of rounds that are open or were abandoned. */
  besides: number
}

/** Bytes sent and received in committed rounds, as the chart of bytes and the table of rounds count them. */
export function traffic(series: MetricSeries[], { bytes_up: up, bytes_down: down }: Experiment): Traffic {
  const total = (name: string) =>
    series.find((metric) => metric.name === name)?.points.reduce((sum, point) => sum + sumOf(point), 0) ?? 0
  const [sent, received] = [total('bytes_up'), total('bytes_down')]
  return { sent, received, besides: Math.max(0, up + down - sent - received) }
}
