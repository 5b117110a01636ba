import type { Entry } from './compared-runs'
import type { Metric } from './metric'
import { bestOf, bytesEach, bytesTotal, type Way } from './result-cells'
import { type Stat, stat } from './statistics'

export interface FrontierPoint {
  entry: Entry
  bytes: number
  best: Stat
  /** No other sends fewer bytes and is as good. */
  onFront: boolean
}

/** The best value against bytes, for runs with both, by rising bytes. */
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

export interface Place {
  x: number
  y: number
}

/** Which way is better, as the catalog of metrics has it. */
export type Better = 'low' | 'high'

/** Indices of the points on the Pareto frontier, by rising x: less x is always better. */
export function paretoFront(points: readonly Place[], better: Better): number[] {
  const sign = better === 'low' ? 1 : -1
  const ordered = points
    .map(({ x, y }, index) => ({ x, cost: sign * y, index }))
    .sort((a, b) => a.x - b.x || a.cost - b.cost)
  let least = Infinity
  return ordered.flatMap(({ cost, index }) => {
    if (cost >= least) return []
    least = cost
    return [index]
  })
}
