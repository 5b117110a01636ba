import { isThinned, type Point } from '@/lib/charts/chart-data'
import { median } from '@/lib/median'

import { type Entry, type Run, type Stat, stat } from './compared-runs'
import { type Better, type Metric, metricOf, QUALITY } from './metric'

export type Way = 'up' | 'down'

function pointsOf(run: Run, name: string): Point[] {
  return run.series.find((series) => series.name === name)?.points ?? []
}

/** The last value of a metric. The last point of a downsampled curve is a mean, so the experiment's own value is used. */
export function lastOf(run: Run, name: string): number | undefined {
  const last = pointsOf(run, name).at(-1)
  const value = last && isThinned(last) ? run.experiment.metrics[name]?.last : last?.value
  return value ?? undefined
}

/** Over all rounds, the base model included; undefined where no value is better than another. */
export function bestOf(run: Run, { name, better }: { name: string; better: Better | undefined }): number | undefined {
  const values = pointsOf(run, name).flatMap(({ value, least = value, greatest = value }) => {
    return (better === 'low' ? least : greatest) ?? []
  })
  if (better === undefined || values.length === 0) return undefined
  return values.reduce((best, value) => (better === 'low' ? Math.min(best, value) : Math.max(best, value)))
}

/**
 * Bytes that one participant sends or receives in a round. The metric is a round's sum over its ⌈fraction · participants⌉
 * participants. The median over rounds is used, because nothing is received in the first.
 */
export function bytesEach({ experiment, series }: Run, way: Way): number | undefined {
  const { participants, spec } = experiment
  const points = series.find(({ name }) => name === `bytes_${way}`)?.points ?? []
  const middle = median(points.filter(({ round }) => round > 0).flatMap(({ value }) => value ?? []))
  const asked = Math.ceil(Number((spec.participants.fraction * participants).toPrecision(12))) // 0.07 · 100 is above 7
  return middle === undefined || asked < 1 ? undefined : middle / asked
}

/** By all participants so far; undefined before the first. */
export function bytesTotal({ experiment }: Run, way: Way): number | undefined {
  const total = way === 'up' ? experiment.bytes_up : experiment.bytes_down
  return total > 0 ? total : undefined
}

/** A figure that is compared, of one entry after the other. */
export interface ResultRow {
  title: string
  metric: Metric
  values: (Stat | undefined)[]
}

const BYTES: [string, string, (run: Run) => number | undefined][] = [
  ['Sent each, per round', 'bytes_up', (run) => bytesEach(run, 'up')],
  ['Received each, per round', 'bytes_down', (run) => bytesEach(run, 'down')],
  ['Sent in all', 'bytes_up', (run) => bytesTotal(run, 'up')],
  ['Received in all', 'bytes_down', (run) => bytesTotal(run, 'down')],
]

/** The best of every quality that some run has, and bytes. */
export function resultRows(entries: readonly Entry[]): ResultRow[] {
  const quality = QUALITY.map((name) => {
    const metric = metricOf(name)
    return { title: `${metric.label}, best`, metric, values: statsOf(entries, (run) => bestOf(run, metric)) }
  })
  const bytes = BYTES.map(([title, name, figure]) => {
    // Fewer bytes for the same are better, though a round with fewer is not.
    const metric: Metric = { ...metricOf(name), better: 'low' }
    return { title, metric, values: statsOf(entries, figure) }
  })
  return [...quality, ...bytes].filter(({ values }) => values.some((value) => value !== undefined))
}

export function statsOf(entries: readonly Entry[], figure: (run: Run) => number | undefined): (Stat | undefined)[] {
  return entries.map(({ runs }) => stat(runs.map(figure)))
}
