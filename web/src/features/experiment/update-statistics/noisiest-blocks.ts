import type { MetricSeries } from '@/api/types'
import { formatMetric } from '@/lib/metrics'

const PREFIX = 'projection_noise/'
/** Blocks shown: a large model has hundreds, and the worst decide. */
const SHOWN = 12

interface BlockNoise {
  block: string
  expected: string
  measured: string
}

/** The blocks with the largest noise, expected before round 1 and measured in it. */
export function noisiestBlocks(series: MetricSeries[]): BlockNoise[] {
  return series
    .filter(({ name }) => name.startsWith(PREFIX))
    .map(({ name, points }) => {
      const at = (round: number) => points.find((point) => point.round === round)?.value ?? undefined
      return { block: name.slice(PREFIX.length), expected: at(0), measured: at(1) }
    })
    .toSorted((a, b) => (b.measured ?? b.expected ?? 0) - (a.measured ?? a.expected ?? 0))
    .slice(0, SHOWN)
    .map(({ block, expected, measured }) => ({
      block,
      expected: formatMetric('projection_noise', expected),
      measured: formatMetric('projection_noise', measured),
    }))
}
