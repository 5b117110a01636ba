import { formatBytes, formatSeconds, plainTick } from '@/lib/format'
import { type MetricName, METRICS } from '@/lib/metrics'

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
    tick: formatBytes,
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
    tick: formatSeconds,
  }),
  kind('sequences_per_second', { title: 'Training speed', unit: 'sequences per second' }),
  kind('peak_memory_bytes', {
    testId: 'chart-memory',
    title: 'Peak memory',
    unit: 'of the training process',
    metrics: ['peak_memory_bytes', 'peak_device_bytes'],
    lines: ['host', 'device'],
    tick: formatBytes,
  }),
]
