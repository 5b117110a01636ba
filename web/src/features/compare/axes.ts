import type uPlot from 'uplot'

import { formatBytes, formatElapsedTick } from '@/lib/format'

import type { Ink } from './use-drawing'
import type { CompareAxis } from './view'

const HOUR = 3600

export const X_AXES: Record<
  CompareAxis,
  { name: string; label: string; tick: (value: number) => string; steps?: number[] }
> = {
  round: {
    name: 'Round',
    label: 'Round',
    tick: String,
    steps: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5],
  },
  time: {
    name: 'Time',
    label: 'Time since its start',
    tick: formatElapsedTick,
    steps: [
      1,
      2,
      5,
      10,
      20,
      30,
      60,
      120,
      300,
      600,
      1200,
      1800,
      HOUR,
      2 * HOUR,
      6 * HOUR,
      12 * HOUR,
      24 * HOUR,
      120 * HOUR,
    ],
  },
  bytes: { name: 'Bytes', label: 'Sent by participants so far', tick: formatBytes },
}

interface Wanted {
  label?: string
  tick: (value: number) => string
  steps?: number[] | undefined
  size: number
  log?: boolean
}

/** An axis in the dashboard's look. uPlot's own ticks on a logarithm begin at its range, whatever number that is. */
export function axis(ink: Ink, { label, tick, steps, size, log = false }: Wanted): uPlot.Axis {
  return {
    stroke: ink('var(--muted)'),
    font: '12px system-ui, sans-serif',
    labelFont: '12px system-ui, sans-serif',
    labelSize: 20,
    grid: { stroke: ink('var(--line)'), width: 1 },
    ticks: { show: false },
    size,
    space: size > 40 ? 30 : 60,
    values: (_, ticks) => ticks.map(tick),
    ...(log && { splits: (_plot, _axis, low, high) => logTicks(low, high), filter: (_plot, ticks) => ticks }),
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

const ENOUGH_TICKS = 6

/** Decades, with 2 and 5 between them where these are few; even steps within a decade. */
export function logTicks(low: number, high: number): number[] {
  const decades = Math.log10(high / low)
  if (decades < 1) return evenTicks(low, high)
  const within = decades < 2.5 ? [1, 2, 5] : [1]
  const stride = Math.ceil(decades / ENOUGH_TICKS)
  const first = Math.floor(Math.log10(low))
  const powers = Array.from({ length: Math.ceil(decades) + 2 }, (_, index) => first + index)
  const ticks = powers
    .filter((power) => power % stride === 0)
    .flatMap((power) => within.map((step) => step * 10 ** power))
  return ticks.filter((tick) => tick >= low && tick <= high)
}

function evenTicks(low: number, high: number): number[] {
  const rough = (high - low) / ENOUGH_TICKS
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10)
  const first = Math.ceil(low / step)
  const count = Math.floor(high / step) - first + 1
  return Array.from({ length: Math.max(0, count) }, (_, index) => Number(((first + index) * step).toPrecision(12)))
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
