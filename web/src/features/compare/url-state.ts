import { type Smoothing, SMOOTHINGS, type XAxis } from '@/lib/charts/chart-data'
import { parseZoom } from '@/lib/charts/zoom'
import { oneOf, type Search, word } from '@/lib/search-params'

/** Experiments that ran at different times have no time of day in common. */
export type CompareAxis = Exclude<XAxis, 'clock'>

/** The state in the address: `?ids=exp_a,,exp_c&baseline=exp_a&metric=rouge_l&x=bytes`. Defaults are left out. */
export interface CompareUrlState {
  /** Ids by place, since a place is a colour: one that is removed leaves its place empty. */
  ids?: string | undefined
  baseline?: string | undefined
  metric?: string | undefined
  x?: Exclude<CompareAxis, 'round'> | undefined
  y?: 'log' | undefined
  xscale?: 'log' | undefined
  smooth?: Smoothing | undefined
  /** The part of the horizontal axis that is shown, in its unit: "12,40". */
  span?: string | undefined
  hidden?: string | undefined
  groups?: 'seeds' | undefined
  spec?: 'all' | undefined
  bytes?: 'total' | undefined
  way?: 'down' | undefined
  scale?: 'linear' | undefined
}

/** More lines would be hard to distinguish, and would cause too many requests at once. */
export const MOST_RUNS = 20

export interface Chosen {
  id: string
  /** From 0; it decides colour and dashes. */
  place: number
}

export function parseCompareUrl(search: Search): CompareUrlState {
  // Every key is named, even if undefined: the router keeps keys of the address that are missing here.
  return {
    ids: list(search.ids),
    baseline: word(search.baseline),
    metric: word(search.metric),
    x: oneOf(['time', 'bytes'], search.x),
    y: oneOf(['log'], search.y),
    xscale: oneOf(['log'], search.xscale),
    smooth: oneOf(SMOOTHINGS, search.smooth),
    span: parseZoom(search.span),
    hidden: list(search.hidden),
    groups: oneOf(['seeds'], search.groups),
    spec: oneOf(['all'], search.spec),
    bytes: oneOf(['total'], search.bytes),
    way: oneOf(['down'], search.way),
    scale: oneOf(['linear'], search.scale),
  }
}

/** `a, b` and `ids=a&ids=b` mean `a,b`. */
function list(value: unknown): string | undefined {
  const words = [value].flat().filter((item) => typeof item === 'string')
  return joined(words.join(',').split(','))
}

/** Without blanks, repeated ids and empty places at the end. */
function joined(places: string[]): string | undefined {
  const trimmed = places.map((id) => id.trim())
  const once = trimmed.map((id, place) => (trimmed.indexOf(id) === place ? id : ''))
  return word(once.join(',').replace(/,+$/, ''))
}

function places(ids: string | undefined): string[] {
  return ids === undefined ? [] : ids.split(',')
}

/** The experiments to compare, each at its index, and the ones above the limit. */
export function chosenRuns(ids: string | undefined): { chosen: Chosen[]; over: string[] } {
  const found = places(ids).flatMap((id, place) => (id === '' ? [] : [{ id, place }]))
  const kept = found.slice(0, MOST_RUNS)
  const free = range(MOST_RUNS).filter((place) => !kept.some((run) => run.place === place))
  const chosen = kept.map((run) => (run.place < MOST_RUNS ? run : { ...run, place: free.shift() ?? run.place }))
  return { chosen, over: found.slice(MOST_RUNS).map(({ id }) => id) }
}

function range(length: number): number[] {
  return Array.from({ length }, (_, index) => index)
}

/** With one more, in the first free place; unchanged where it is there already or there are enough. */
export function withRun(view: CompareUrlState, id: string): CompareUrlState {
  const ids = places(view.ids)
  if (ids.includes(id) || ids.filter((other) => other !== '').length >= MOST_RUNS) return view
  const free = ids.indexOf('')
  return { ...view, ids: joined(free < 0 ? [...ids, id] : ids.with(free, id)) }
}

/** Without one; the others keep their places. */
export function withoutRun(view: CompareUrlState, id: string): CompareUrlState {
  const hidden = places(view.hidden).filter((other) => other !== id)
  return {
    ...view,
    ids: joined(places(view.ids).map((other) => (other === id ? '' : other))),
    hidden: joined(hidden),
    baseline: view.baseline === id ? undefined : view.baseline,
  }
}

export function isHidden(view: CompareUrlState, id: string): boolean {
  return places(view.hidden).includes(id)
}

export function toggleHidden(view: CompareUrlState, id: string): CompareUrlState {
  const hidden = places(view.hidden)
  return { ...view, hidden: joined(isHidden(view, id) ? hidden.filter((other) => other !== id) : [...hidden, id]) }
}
