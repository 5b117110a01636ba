import type uPlot from 'uplot'

import { logTicks } from '@/lib/charts/log-scale'
import type { Ink } from '@/lib/charts/use-plot'

import type { CompareAxis } from './url-state'

export const X_AXES: Record<CompareAxis, { name: string; label: string }> = {
  round: { name: 'Round', label: 'Round' },
  time: { name: 'Time', label: 'Time since the start' },
  bytes: { name: 'Bytes', label: 'Sent by participants so far' },
}

interface Wanted {
  label?: string
  labels: (ticks: readonly number[]) => string[]
  steps?: number[] | undefined
  size: number
  log?: boolean
}

/** An axis in the dashboard's look. uPlot's own ticks on a logarithm begin at its range, whatever number that is. */
export function axis(ink: Ink, { label, labels, steps, size, log = false }: Wanted): uPlot.Axis {
  return {
    stroke: () => ink('var(--muted)'),
    font: '12px system-ui, sans-serif',
    labelFont: '12px system-ui, sans-serif',
    labelSize: 20,
    grid: { stroke: () => ink('var(--line)'), width: 1 },
    ticks: { show: false },
    size,
    space: size > 40 ? 30 : 60,
    values: (_, ticks) => labels(ticks),
    ...(log && { splits: (_plot, _axis, low, high) => logTicks(low, high), filter: (_plot, ticks) => ticks }),
    ...(label !== undefined && { label }),
    ...(steps !== undefined && { incrs: steps }),
  }
}

/** The range of the values with room at both ends; it starts at 0 with `fromZero`. */
export function linearRange(values: readonly number[], fromZero: boolean): [number, number] {
  if (values.length === 0) return [0, 1]
  const [low, high] = [fromZero ? 0 : Math.min(...values), Math.max(...values)]
  const room = (high - low || Math.abs(high) || 1) * 0.08
  return [fromZero ? 0 : low - room, high + room]
}
