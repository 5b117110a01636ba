export interface Place {
  x: number
  y: number
}

/** Which way is better, as the catalog of metrics has it. */
export type Better = 'low' | 'high'

/** Indices of those that no other beats in both, by rising x: less x is always better. */
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
