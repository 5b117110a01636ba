import { formatBytes, formatClockTick, formatElapsedTick } from '@/lib/format'

import type { XAxis } from './chart-data'

const HOUR = 3600

const TIMES = [
  ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800],
  ...[HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR, 120 * HOUR],
]

/** The steps and tick labels of each horizontal axis. */
export const X_AXIS: Record<XAxis, { steps?: number[]; tick: (value: number) => string }> = {
  round: { steps: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5], tick: String },
  time: { steps: TIMES, tick: formatElapsedTick },
  clock: { steps: TIMES, tick: formatClockTick },
  bytes: { tick: formatBytes },
}
