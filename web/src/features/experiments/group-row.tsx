import type { ExperimentGroup } from '@/api/types'

import type { Column } from './columns'
import { groupCell } from './group-cells'
import { Cell, type CellContext } from './table-cells'

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
