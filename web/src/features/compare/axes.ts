import type uPlot from 'uplot'

import type { XAxis } from '@/lib/chart-data'
import { formatBytes, formatElapsedTick } from '@/lib/format'

import type { Ink } from './use-drawing'

export const X_AXES: Record<XAxis, { name: string; label: string; tick: (value: number) => string; steps?: number[] }> =
  {
    round: {
      name: 'Round',
      label: 'Round',
      tick: String,
      steps: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5],
    },
    time: { name: 'Time', label: 'Time since its start', tick: formatElapsedTick },
    bytes: { name: 'Bytes', label: 'Sent by participants so far', tick: formatBytes },
  }

interface Wanted {
  label?: string
  tick: (value: number) => string
  steps?: number[] | undefined
  size: number
}

/** An axis in the dashboard's look. On a logarithm, uPlot gives null for ticks that would stand too close. */
export function axis(ink: Ink, { label, tick, steps, size }: Wanted): uPlot.Axis {
  return {
    stroke: ink('var(--muted)'),
    font: '12px system-ui, sans-serif',
    labelFont: '12px system-ui, sans-serif',
    labelSize: 20,
    grid: { stroke: ink('var(--line)'), width: 1 },
    ticks: { show: false },
    size,
    space: size > 40 ? 30 : 60,
    values: (_, ticks) => ticks.map((value: number | null) => (value === null ? '' : tick(value))),
    ...(label !== undefined && { label }),
    ...(steps !== undefined && { incrs: steps }),
  }
}

/** uPlot's numbers for a logarithm and an even scale, which its types declare without exporting them. */
export function distribution(log: boolean): uPlot.Scale.Distr {
  const number: unknown = log ? 3 : 1
  return number as uPlot.Scale.Distr
}

/** No more digits than tell ticks apart. */
export function plainTick(value: number): string {
  return String(Number(value.toPrecision(4)))
}

/** The range of values on a logarithm, with room at both ends; one value alone still has some. */
export function logRange(values: readonly number[]): [number, number] {
  const positive = values.filter((value) => value > 0)
  if (positive.length === 0) return [1, 10]
  const [low, high] = [Math.min(...positive), Math.max(...positive)]
  const room = Math.max(1.1, (high / low) ** 0.08)
  return [low / room, high * room]
}

/** The same on an even scale, from 0 on where asked for. */
export function linearRange(values: readonly number[], fromZero: boolean): [number, number] {
  if (values.length === 0) return [0, 1]
  const [low, high] = [fromZero ? 0 : Math.min(...values), Math.max(...values)]
  const room = (high - low || Math.abs(high) || 1) * 0.08
  return [fromZero ? 0 : low - room, high + room]
}
