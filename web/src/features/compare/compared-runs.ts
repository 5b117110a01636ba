import type { Experiment, MetricSeries } from '@/api/types'
import { flatten } from '@/lib/tree'

/** An experiment that is compared, and what has been measured of it. */
export interface Run {
  id: string
  place: number
  experiment: Experiment
  series: MetricSeries[]
  /** More than 1 where the curves are thinned out. */
  roundsPerPoint?: number
}

/** One line, one column, one point: a run, or the runs that differ in their seed only. */
export interface Entry {
  /** Its first run's id. */
  key: string
  /** Its first run's place. */
  place: number
  /** Unique name among all runs. */
  label: string
  runs: [Run, ...Run[]]
}

/** Every run alone, or grouped by specification. */
export function entriesOf(runs: readonly Run[], grouped: boolean): Entry[] {
  const groups = grouped
    ? seedGroups(runs.map((run) => ({ run, spec: run.experiment.spec })))
    : runs.map((run) => [{ run }])
  const members = groups.map((group) => group.map(({ run }) => run)).filter(isNotEmpty)
  const labels = labelsOf(members)
  return members.map((all, index) => ({
    key: all[0].id,
    place: all[0].place,
    label: labels[index] ?? all[0].id,
    runs: all,
  }))
}

function isNotEmpty(runs: Run[]): runs is [Run, ...Run[]] {
  return runs.length > 0
}

/** The name; the seed, then the id's end, where that is not enough. */
function labelsOf(members: readonly [Run, ...Run[]][]): string[] {
  const names = members.map(([{ experiment }, ...others]) =>
    others.length > 0 ? `${experiment.name} (${others.length + 1} seeds)` : experiment.name,
  )
  const seeded = apart(names, (index) => `seed ${members[index]?.[0].experiment.spec.seed ?? 0}`)
  return apart(seeded, (index) => members[index]?.[0].id.slice(-6) ?? '')
}

/** Adds a word to duplicate names. */
function apart(names: string[], word: (index: number) => string): string[] {
  return names.map((name, index) =>
    names.some((other, position) => other === name && position !== index) ? `${name} · ${word(index)}` : name,
  )
}

/** The entry that the address names as the baseline, by any of its runs. */
export function baselineOf(entries: readonly Entry[], id: string | undefined): Entry | undefined {
  return entries.find(({ runs }) => runs.some((run) => run.id === id))
}

const FREE = ['seed', 'name']

/** Runs grouped by specification without seed and name, in order of first appearance. */
export function seedGroups<T extends { spec: unknown }>(runs: readonly T[]): T[][] {
  const groups = new Map<string, T[]>()
  for (const run of runs) {
    const key = sameApartFromSeed(run.spec)
    groups.set(key, [...(groups.get(key) ?? []), run])
  }
  return [...groups.values()]
}

function sameApartFromSeed(spec: unknown): string {
  const fields = flatten(spec).filter(([path]) => !FREE.includes(path))
  return JSON.stringify(fields.sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** The mean of several runs, and how far they are apart. */
export interface Stat {
  mean: number
  /** Of the sample (n − 1); one run has none. */
  sd: number | undefined
  count: number
}

/** Of the values that there are; undefined without any. */
export function stat(values: readonly (number | undefined)[]): Stat | undefined {
  const found = values.filter((value) => value !== undefined)
  if (found.length === 0) return undefined
  const mean = found.reduce((sum, value) => sum + value, 0) / found.length
  const squares = found.reduce((sum, value) => sum + (value - mean) ** 2, 0)
  return { mean, sd: found.length > 1 ? Math.sqrt(squares / (found.length - 1)) : undefined, count: found.length }
}
