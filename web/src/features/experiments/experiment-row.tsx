import { Link, useNavigate } from '@tanstack/react-router'
import type { MouseEvent } from 'react'

import { useRename } from '@/api/experiment-edit'
import type { ListedExperiment } from '@/api/types'
import { EditInPlace } from '@/lib/ui/edit-in-place'

import type { Column } from './columns'
import { Cell, type CellContext, experimentCell } from './table-cells'

interface Props {
  experiment: ListedExperiment
  columns: readonly Column[]
  context: CellContext
  /** True if the row is below the row of its group. */
  inside: boolean
  ticked: boolean
  onTick: (range: boolean) => void
  /** True if this user may only read. */
  reads: boolean
}

export function ExperimentRow({ experiment, columns, context, inside, ticked, onTick, reads }: Props) {
  const { id, name } = experiment
  const navigate = useNavigate()
  const open = (event: MouseEvent<HTMLElement>) => {
    if (isPlain(event)) void navigate({ to: '/experiments/$id', params: { id } })
  }
  return (
    <tr data-testid="experiment-row" data-row={id} data-ticked={ticked} data-inside={inside} onClick={open}>
      <td className="cell-tick">
        <input
          type="checkbox"
          aria-label={`Select ${name}`}
          checked={ticked}
          onChange={(event) => {
            onTick((event.nativeEvent as PointerEvent).shiftKey)
          }}
        />
      </td>
      <th scope="row" className="cell-name">
        {reads ? <NameLink id={id} name={name} /> : <EditableName id={id} name={name} />}
      </th>
      {columns.map((column) => (
        <Cell key={column.id} column={column}>
          {experimentCell(column, experiment, context)}
        </Cell>
      ))}
    </tr>
  )
}

/** A click on the row itself, not on what is in it, and no end of marking a text. */
function isPlain({ target, defaultPrevented }: MouseEvent): boolean {
  const inside = target instanceof Element && target.closest('a, button, input, form') !== null
  return !inside && !defaultPrevented && window.getSelection()?.isCollapsed !== false
}

function NameLink({ id, name }: { id: string; name: string }) {
  return (
    <Link to="/experiments/$id" params={{ id }} className="row-link" title={name}>
      {name}
    </Link>
  )
}

function EditableName({ id, name }: { id: string; name: string }) {
  return (
    <EditInPlace {...useRename({ id, name })}>
      <NameLink id={id} name={name} />
    </EditInPlace>
  )
}
