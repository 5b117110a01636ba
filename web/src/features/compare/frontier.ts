import type { Entry } from './compared-runs'
import type { Metric } from './metric'
import { type Better, paretoFront } from './pareto'
import { bestOf, bytesEach, bytesTotal, type Way } from './result-cells'
import { type Stat, stat } from './statistics'

export interface FrontierPoint {
  entry: Entry
  bytes: number
  best: Stat
  /** No other sends fewer bytes and is as good. */
  onFront: boolean
}

/** The best value against bytes, of those that have both, by rising bytes. */
export function frontierPoints(
  entries: readonly Entry[],
  metric: Metric & { better: Better },
  { way, total }: { way: Way; total: boolean },
): FrontierPoint[] {
  const bytesOf = total ? bytesTotal : bytesEach
  const points = entries.flatMap((entry) => {
    const bytes = stat(entry.runs.map((run) => bytesOf(run, way)))?.mean
    const best = stat(entry.runs.map((run) => bestOf(run, metric)))
    return bytes === undefined || bytes <= 0 || best === undefined ? [] : [{ entry, bytes, best }]
  })
  const front = paretoFront(
    points.map(({ bytes, best }) => ({ x: bytes, y: best.mean })),
    metric.better,
  )
  return points.map((point, index) => ({ ...point, onFront: front.includes(index) })).sort((a, b) => a.bytes - b.bytes)
}
