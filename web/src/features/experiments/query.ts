import { EXPERIMENT_STATES } from '@/api/types'
import { oneOf } from '@/lib/search-params'

import { COLUMNS } from './columns'
import { type ExperimentListUrlState, filtersOf } from './url-state'

export type Filters = ReturnType<typeof filtersOf>

/** Short names of columns that are often limited. */
const SHORT: Record<string, string> = { loss: 'eval_loss', rouge: 'rouge_l', rate: 'learning_rate', sent: 'bytes_up' }

/** Columns of numbers, which can be limited. */
const NUMBERS = new Set(['round', 'rounds', ...COLUMNS.flatMap(({ id, number }) => (number ? [id] : []))])

const TOKEN = /(\w+):"([^"]*)"|\S+/g
const BOUND = /^(\w+)(<=|>=|<|>)(-?\d+(?:\.\d+)?(?:e[+-]?\d{1,2})?)$/i

/** The filters of a typed text such as `hearts algorithm:ferret state:running loss<2`, and its words without a meaning. */
export function parseQuery(text: string): { filters: Filters; unknown: string[] } {
  const unknown: string[] = []
  const words: string[] = []
  let filters: Filters = filtersOf({})
  for (const [token, quotedKey, quoted] of text.matchAll(TOKEN)) {
    const changed = withBound(filters, token) ?? withValue(filters, token, quotedKey, quoted)
    if (changed === 'unknown') unknown.push(token)
    else if (changed === undefined) words.push(token)
    else filters = changed
  }
  return { filters: { ...filters, name: words.length > 0 ? words.join(' ') : undefined }, unknown }
}

function withBound(filters: Filters, token: string): Filters | undefined {
  const [, name = '', sign = '', number = ''] = BOUND.exec(token) ?? []
  const column = SHORT[name] ?? name
  return NUMBERS.has(column)
    ? { ...filters, where: [...(filters.where ?? []), `${column}${sign}${number}`] }
    : undefined
}

/** Undefined for a word without a key: it is part of a name. */
function withValue(
  filters: Filters,
  token: string,
  quotedKey?: string,
  quoted?: string,
): Filters | 'unknown' | undefined {
  const [plainKey = '', ...rest] = token.split(':')
  const [key, value] = quotedKey === undefined ? [plainKey, rest.join(':')] : [quotedKey, quoted ?? '']
  if (quotedKey === undefined && rest.length === 0) return undefined
  switch (key) {
    case 'state': {
      const state = oneOf(EXPERIMENT_STATES, value)
      return state === undefined ? 'unknown' : { ...filters, state: [...(filters.state ?? []), state] }
    }
    case 'tag':
      return value === '' ? 'unknown' : { ...filters, tag: [...(filters.tag ?? []), value] }
    case 'project':
    case 'algorithm':
      return value === '' ? 'unknown' : { ...filters, [key]: value }
    case 'data':
      return value === '' ? 'unknown' : { ...filters, dataset: value }
    case 'is':
      return value === 'stalled' || value === 'archived' ? { ...filters, [value]: 'only' } : 'unknown'
    default:
      return undefined
  }
}

/** The text of filters, which `parseQuery` reads back. */
export function queryText(view: ExperimentListUrlState): string {
  const { state = [], name, project, tag = [], archived, stalled, algorithm, dataset, where = [] } = view
  const one = (key: string, value: string | undefined) =>
    value === undefined ? [] : [`${key}:${quotedIfNeeded(value)}`]
  return [
    ...(name === undefined ? [] : [name]),
    ...state.flatMap((each) => one('state', each)),
    ...one('algorithm', algorithm),
    ...one('data', dataset),
    ...one('project', project),
    ...tag.flatMap((each) => one('tag', each)),
    ...one('is', stalled && 'stalled'),
    ...one('is', archived && 'archived'),
    ...where,
  ].join(' ')
}

function quotedIfNeeded(value: string): string {
  return /\s/.test(value) ? `"${value}"` : value
}
