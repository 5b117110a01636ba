import type { MetricSeries } from '@/api/types'
import { median } from '@/lib/median'
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
  { names: ['numbers_sent'] },
  { names: ['numbers_received'] },
  { names: ['peak_memory_bytes'] },
  { names: ['peak_device_bytes'] },
]

/** The cost of a round for one participant and the server, as medians, because the first round compiles kernels. */
export function costFacts(series: MetricSeries[]): CostFact[] {
  const medians = new Map(series.map(({ name, points }) => [name, median(points.flatMap(({ value }) => value ?? []))]))
  return FACTS.flatMap(({ term, names }) => {
    const found = names.flatMap((name) => medians.get(name) ?? [])
    if (found.length < names.length) return []
    const total = found.reduce((sum, value) => sum + value, 0)
    return [{ term: term ?? METRICS[names[0]].label, value: formatMetric(names[0], total) }]
  })
}
