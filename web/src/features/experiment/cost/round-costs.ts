import type { MetricSeries, Round } from '@/api/types'
import { secondsBetween } from '@/lib/format'
import { median } from '@/lib/median'
import { formatMetric, type MetricName, METRICS } from '@/lib/metrics'

interface CostFact {
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

interface Phase {
  term: string
  /** Seconds. */
  usual: number
  longest: { seconds: number; round: number }
}

type Moment = 'opened_at' | 'frozen_at' | 'committed_at' | 'evaluated_at'

const PHASES: [string, Moment, Moment][] = [
  ['Open for contributions', 'opened_at', 'frozen_at'],
  ['Aggregation', 'frozen_at', 'committed_at'],
  ['Evaluation', 'committed_at', 'evaluated_at'],
]

/** The duration of each phase of a round. Only the last of several attempts at a round counts. */
export function phasesOf(rounds: readonly Round[]): Phase[] {
  return PHASES.flatMap(([term, begin, end]) => {
    const lengths = rounds.flatMap((round) => {
      const [began, ended] = [round[begin], round[end]]
      return began === null || ended === null ? [] : [{ seconds: secondsBetween(began, ended), round: round.number }]
    })
    const usual = median(lengths.map(({ seconds }) => seconds))
    if (usual === undefined) return []
    return [{ term, usual, longest: lengths.reduce((most, next) => (next.seconds > most.seconds ? next : most)) }]
  })
}
