import type { MetricSeries } from '@/api/types'
import { formatMetric, type MetricName, METRICS } from '@/lib/metrics'

export interface CostFact {
  term: string
  value: string
}

const FACTS: { term?: string; names: [MetricName, ...MetricName[]] }[] = [
  { names: ['local_seconds'] },
  { names: ['aggregate_seconds'] },
  { term: 'Overall', names: ['local_seconds', 'aggregate_seconds'] },
  { names: ['sequences_per_second'] },
  { names: ['parameters_up'] },
  { names: ['parameters_down'] },
  { names: ['peak_memory_bytes'] },
  { names: ['peak_device_bytes'] },
]

/** What a round cost one participant and the server: medians, because the first round compiles kernels. */
export function costFacts(series: MetricSeries[]): CostFact[] {
  const medians = new Map(series.map(({ name, points }) => [name, median(points.flatMap(({ value }) => value ?? []))]))
  return FACTS.flatMap(({ term, names }) => {
    const found = names.flatMap((name) => medians.get(name) ?? [])
    if (found.length < names.length) return []
    const total = found.reduce((sum, value) => sum + value, 0)
    return [{ term: term ?? METRICS[names[0]].label, value: formatMetric(names[0], total) }]
  })
}

function median(values: number[]): number | undefined {
  if (values.length === 0) return undefined
  const ordered = values.toSorted((a, b) => a - b)
  const middle = ordered.length / 2
  const around = ordered.slice(Math.ceil(middle) - 1, Math.floor(middle) + 1)
  return around.reduce((sum, value) => sum + value, 0) / around.length
}
