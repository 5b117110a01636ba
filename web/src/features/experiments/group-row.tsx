import type { ReactNode } from 'react'

import type { ExperimentGroup } from '@/api/types'
import { formatBytes } from '@/lib/format'
import { formatMetric, type MetricName } from '@/lib/metrics'
import { RelativeTime } from '@/lib/ui/relative-time'
import { StateChip } from '@/lib/ui/state-chip'

import type { Column } from './columns'
import { Cell, type CellContext, experimentCell } from './table-cells'

interface Props {
  group: ExperimentGroup
  columns: readonly Column[]
  context: CellContext
  open: boolean
  onOpen: () => void
  ticked: boolean
  onTick: () => void
}

/** Experiments that differ in the seed only, as one row that opens. */
export function GroupRow({ group, columns, context, open, onOpen, ticked, onTick }: Props) {
  const { name } = group.newest
  return (
    <tr data-testid="group-row" data-ticked={ticked}>
      <td className="cell-tick">
        <input type="checkbox" aria-label={`Select all ${group.count} of ${name}`} checked={ticked} onChange={onTick} />
      </td>
      <th scope="row" className="cell-name">
        <button type="button" className="group-toggle" aria-expanded={open} title={name} onClick={onOpen}>
          <span className="group-mark" aria-hidden>
            ▸
          </span>
          <span className="row-link">{name}</span>
          <span className="muted">× {group.count}</span>
        </button>
      </th>
      {columns.map((column) => (
        <Cell key={column.id} column={column}>
          {groupCell(column, group, context)}
        </Cell>
      ))}
    </tr>
  )
}

type Spread = ExperimentGroup['metrics'][string]['last']

/** A group's value in a column: mean ± sd of a metric, the sum of bytes, or else the value that its experiments share. */
function groupCell(column: Column, group: ExperimentGroup, context: CellContext): ReactNode {
  if (column.metric) {
    const { name, of } = column.metric
    const spread = group.metrics[name]?.[of]
    return spread && <span title={`Over ${spread.count} of ${group.count}`}>{spreadText(name, spread)}</span>
  }
  const cell = CELLS[column.id]
  return cell ? cell(group, context) : experimentCell(column, group.newest, context)
}

const CELLS: Record<string, (group: ExperimentGroup, context: CellContext) => ReactNode> = {
  state: ({ states }) => <States states={states} />,
  round: ({ newest: { rounds } }) => <span className="muted">of {rounds}</span>,
  seed: ({ count }) => <span className="muted">{count} seeds</span>,
  bytes_up: ({ bytes_up: bytes }) => bytes > 0 && formatBytes(bytes),
  bytes_down: ({ bytes_down: bytes }) => bytes > 0 && formatBytes(bytes),
  left: () => undefined,
  tags: () => undefined,
  created: ({ newest }, { now }) => <RelativeTime at={newest.created_at} now={now} />,
  finished: () => undefined,
}

/** "1.900 ± 0.120", and the unit once: "35.2 ± 1.4 %". */
export function spreadText(name: MetricName, { mean, sd }: Spread): string {
  const whole = formatMetric(name, mean)
  if (sd === null) return whole
  const [, number = whole, unit = ''] = /^(\S+)(.*)$/.exec(whole) ?? []
  const [deviation] = formatMetric(name, sd).split(' ')
  return `${number} ± ${deviation ?? ''}${unit}`
}

function States({ states }: { states: ExperimentGroup['states'] }) {
  return (
    <span className="group-states">
      {Object.entries(states).map(([state, count]) => (
        <StateChip key={state} state={state} count={count} />
      ))}
    </span>
  )
}
