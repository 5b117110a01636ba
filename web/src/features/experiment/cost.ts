import type { MetricSeries } from '@/api/types'
import { formatBytes, formatCount, formatSeconds } from '@/lib/format'

export interface CostFact {
  term: string
  value: string
}

const FACTS: { term: string; names: string[]; format: (value: number) => string }[] = [
  { term: 'Local update', names: ['local_seconds'], format: formatSeconds },
  { term: 'Global aggregation', names: ['aggregate_seconds'], format: formatSeconds },
  { term: 'Overall', names: ['local_seconds', 'aggregate_seconds'], format: formatSeconds },
  { term: 'Sequences per second', names: ['sequences_per_second'], format: (value) => value.toPrecision(3) },
  { term: 'Parameters sent', names: ['parameters_up'], format: formatCount },
  { term: 'Parameters received', names: ['parameters_down'], format: formatCount },
  { term: 'Peak memory', names: ['peak_memory_bytes'], format: formatBytes },
  { term: 'Peak memory, device', names: ['peak_device_bytes'], format: formatBytes },
]

/** What a round cost one participant and the server: medians, because the first round compiles kernels. */
export function costFacts(series: MetricSeries[]): CostFact[] {
  const medians = new Map(series.map(({ name, points }) => [name, median(points.map((point) => point.value))]))
  return FACTS.flatMap(({ term, names, format }) => {
    const found = names.flatMap((name) => medians.get(name) ?? [])
    if (found.length < names.length) return []
    return [{ term, value: format(found.reduce((sum, value) => sum + value, 0)) }]
  })
}

function median(values: number[]): number {
  const ordered = values.toSorted((a, b) => a - b)
  const middle = ordered.length / 2
  const around = ordered.slice(Math.ceil(middle) - 1, Math.floor(middle) + 1)
  return around.reduce((sum, value) => sum + value, 0) / around.length
}
