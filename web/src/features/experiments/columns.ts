import type { Sort } from '@/api/experiment-list'
import type { ListedExperiment } from '@/api/types'
import { type MetricName, METRICS } from '@/lib/metrics'

/** A column of the list, which follows the name column. */
export interface Column {
  id: string
  label: string
  /** The tooltip of the column's name. */
  hint?: string
  /** The two sort orders of the column, the more useful one first. The server sorts. */
  sorts?: readonly [Sort, Sort]
  number?: boolean
  metric?: { name: MetricName; of: 'last' | 'best' }
}

type Measured = 'eval_loss' | 'rouge_l' | 'exact_match' | 'train_loss'

function measured(name: Measured, label: string, bestLabel: string): Column[] {
  const low = METRICS[name].better === 'low'
  const ends = (sort: Measured | `best_${Measured}`): [Sort, Sort] => (low ? [sort, `-${sort}`] : [`-${sort}`, sort])
  const both = { number: true }
  return [
    { id: name, label, hint: 'After the last round', metric: { name, of: 'last' }, sorts: ends(name), ...both },
    {
      id: `best_${name}`,
      label: bestLabel,
      hint: 'Of all rounds',
      metric: { name, of: 'best' },
      sorts: ends(`best_${name}`),
      ...both,
    },
  ]
}

export const COLUMNS: readonly Column[] = [
  { id: 'state', label: 'State', sorts: ['state', '-state'] },
  { id: 'round', label: 'Round', hint: 'Committed rounds of all rounds', sorts: ['-round', 'round'] },
  { id: 'project', label: 'Project', sorts: ['project', '-project'] },
  { id: 'algorithm', label: 'Algorithm', sorts: ['algorithm', '-algorithm'] },
  { id: 'dataset', label: 'Data', sorts: ['dataset', '-dataset'] },
  { id: 'participants', label: 'Participants', sorts: ['-participants', 'participants'], number: true },
  { id: 'K', label: 'K', hint: 'Coordinates, or bytes per round', sorts: ['-K', 'K'], number: true },
  {
    id: 'learning_rate',
    label: 'Rate',
    hint: 'The local learning rate',
    sorts: ['-learning_rate', 'learning_rate'],
    number: true,
  },
  { id: 'seed', label: 'Seed', sorts: ['seed', '-seed'], number: true },
  ...measured('eval_loss', 'Eval loss', 'Best loss'),
  ...measured('rouge_l', 'Rouge-L', 'Best Rouge-L'),
  ...measured('exact_match', 'Exact match', 'Best match'),
  ...measured('train_loss', 'Train loss', 'Best train loss'),
  {
    id: 'bytes_per_upload',
    label: 'Upload',
    hint: 'Bytes of one upload, in the last round',
    sorts: ['bytes_per_upload', '-bytes_per_upload'],
    number: true,
  },
  {
    id: 'bytes_up',
    label: 'Sent',
    hint: 'By all participants so far',
    sorts: ['-bytes_up', 'bytes_up'],
    number: true,
  },
  {
    id: 'bytes_down',
    label: 'Received',
    hint: 'By all participants so far',
    sorts: ['-bytes_down', 'bytes_down'],
    number: true,
  },
  {
    id: 'left',
    label: 'Time left',
    hint: 'Estimated from the last rounds',
    sorts: ['left', '-left'],
    number: true,
  },
  { id: 'tags', label: 'Tags', sorts: ['tags', '-tags'] },
  { id: 'created', label: 'Created', sorts: ['-created', 'created'] },
  { id: 'finished', label: 'Finished', sorts: ['-finished', 'finished'] },
]

export const SORTS: readonly Sort[] = ['name', '-name', ...COLUMNS.flatMap(({ sorts }) => sorts ?? [])]

/** The known columns of a list of ids separated by commas, in the table's order; undefined without any. */
export function chosenColumns(ids: string | undefined): string[] | undefined {
  const given = ids?.split(',') ?? []
  const found = COLUMNS.filter(({ id }) => given.includes(id)).map(({ id }) => id)
  return found.length > 0 ? found : undefined
}

/** With the name, the table has eight columns by default. */
const USUAL = 7

/** The columns that are shown by default, the most useful first: those with a value in a row, and a project to choose. */
export function usualColumns(rows: readonly ListedExperiment[], projects: number): string[] {
  const has = (name: MetricName) => rows.some(({ metrics }) => metrics[name] !== undefined)
  const useful: [string, boolean][] = [
    ['state', true],
    ['round', true],
    ['project', projects > 1],
    ['algorithm', true],
    ['eval_loss', has('eval_loss')],
    ['rouge_l', has('rouge_l')],
    ['exact_match', has('exact_match')],
    ['created', true],
    ['tags', rows.some(({ tags }) => tags.length > 0)],
    ['left', rows.some(({ estimated_seconds_left: left }) => left !== null)],
    ['bytes_per_upload', true],
    ['bytes_up', true],
    ['dataset', true],
  ]
  const ids = useful.filter(([, is]) => is).map(([id]) => id)
  return columnsOf(ids.slice(0, USUAL)).map(({ id }) => id)
}

/** The columns with those ids, in the table's order. */
export function columnsOf(ids: readonly string[]): Column[] {
  return COLUMNS.filter(({ id }) => ids.includes(id))
}
