import type { Sort } from '@/api/experiment-list'
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
  /** Shown by default; a metric only if a row has a value of it. */
  usual?: boolean
  metric?: { name: MetricName; of: 'last' | 'best' }
}

type Measured = 'eval_loss' | 'rouge_l' | 'exact_match' | 'train_loss'

function measured(name: Measured, label: string, bestLabel: string, usual: boolean): Column[] {
  const low = METRICS[name].better === 'low'
  const ends = (sort: Measured | `best_${Measured}`): [Sort, Sort] => (low ? [sort, `-${sort}`] : [`-${sort}`, sort])
  const both = { number: true, usual }
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
  { id: 'state', label: 'State', sorts: ['state', '-state'], usual: true },
  { id: 'round', label: 'Round', hint: 'Committed rounds of all rounds', sorts: ['-round', 'round'], usual: true },
  { id: 'project', label: 'Project', sorts: ['project', '-project'] },
  { id: 'algorithm', label: 'Algorithm', sorts: ['algorithm', '-algorithm'], usual: true },
  { id: 'dataset', label: 'Data', sorts: ['dataset', '-dataset'] },
  { id: 'participants', label: 'Participants', sorts: ['-participants', 'participants'], number: true },
  { id: 'K', label: 'K', hint: 'Coordinates, or bytes per round', sorts: ['-K', 'K'], number: true, usual: true },
  {
    id: 'learning_rate',
    label: 'Rate',
    hint: 'The local learning rate',
    sorts: ['-learning_rate', 'learning_rate'],
    number: true,
    usual: true,
  },
  { id: 'seed', label: 'Seed', sorts: ['seed', '-seed'], number: true, usual: true },
  ...measured('eval_loss', 'Eval loss', 'Best loss', true),
  ...measured('rouge_l', 'Rouge-L', 'Best Rouge-L', true),
  ...measured('exact_match', 'Exact match', 'Best match', true),
  ...measured('train_loss', 'Train loss', 'Best train loss', false),
  {
    id: 'bytes_per_upload',
    label: 'Upload',
    hint: 'Bytes of one upload, in the last round',
    sorts: ['bytes_per_upload', '-bytes_per_upload'],
    number: true,
    usual: true,
  },
  {
    id: 'bytes_up',
    label: 'Sent',
    hint: 'By all participants so far',
    sorts: ['-bytes_up', 'bytes_up'],
    number: true,
    usual: true,
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
    usual: true,
  },
  { id: 'tags', label: 'Tags', sorts: ['tags', '-tags'], usual: true },
  { id: 'created', label: 'Created', sorts: ['-created', 'created'], usual: true },
  { id: 'finished', label: 'Finished', sorts: ['-finished', 'finished'] },
]

export const SORTS: readonly Sort[] = ['name', '-name', ...COLUMNS.flatMap(({ sorts }) => sorts ?? [])]

/** The known columns of a list of ids separated by commas, in the table's order; undefined without any. */
export function chosenColumns(ids: string | undefined): string[] | undefined {
  const given = ids?.split(',') ?? []
  const found = COLUMNS.filter(({ id }) => given.includes(id)).map(({ id }) => id)
  return found.length > 0 ? found : undefined
}

/** The columns that are shown by default. A metric is among them if a row has a value of it. */
export function usualColumns(rows: readonly { metrics: Record<string, unknown> }[], projects: number): string[] {
  const has = (name: string) => rows.some(({ metrics }) => metrics[name] !== undefined)
  const usual = COLUMNS.filter(({ usual, metric }) => usual && (metric === undefined || has(metric.name)))
  return usual.map(({ id }) => id).concat(projects > 1 ? ['project'] : [])
}

/** The columns with those ids, in the table's order. */
export function columnsOf(ids: readonly string[]): Column[] {
  return COLUMNS.filter(({ id }) => ids.includes(id))
}
