import { useMemo, useState } from 'react'

import { download } from '@/lib/download'
import { SiteName } from '@/lib/ui/site-name'
import { TableHead } from '@/lib/ui/table-head'
import { VirtualTable } from '@/lib/ui/virtual-table'

import { cellText, csvOf, partsOf } from './cell-text'
import type { Matrix } from './participation-matrix'

const COLUMNS = ['Participant', 'Round', 'State', 'Sent', 'Trained', 'Train loss', 'Refused for']
const NUMBERS = ['Round', 'Sent', 'Trained', 'Train loss']

/** The values behind the heat-map, the newest round first. */
export function CellTable({ id, matrix }: { id: string; matrix: Matrix }) {
  const [open, setOpen] = useState(false)
  return (
    <div className="chart-foot">
      <details
        className="data-table"
        onToggle={(event) => {
          setOpen(event.currentTarget.open)
        }}
      >
        <summary>Values</summary>
        {open && <Values matrix={matrix} />}
      </details>
      <button
        type="button"
        className="copy-button"
        aria-label="Participation as CSV"
        onClick={() => {
          download(`${id}-participation.csv`, new Blob([csvOf(matrix)], { type: 'text/csv' }))
        }}
      >
        CSV
      </button>
    </div>
  )
}

function Values({ matrix }: { matrix: Matrix }) {
  const places = useMemo(() => partsOf(matrix), [matrix])
  const columns = matrix.rounds.length
  return (
    <VirtualTable
      label="Participation, values"
      testId="participation-values"
      head={<TableHead columns={COLUMNS} numbers={NUMBERS} />}
      columns={COLUMNS.length}
      count={places.length}
      height={34}
      row={(index, row) => {
        const place = places[index] ?? 0
        const text = cellText(matrix, { row: Math.floor(place / columns), column: place % columns })
        return (
          <tr key={place} {...row}>
            <th scope="row">
              <SiteName name={text.displayName} id={text.name} />
            </th>
            <td className="number">{text.round}</td>
            <td>{text.state}</td>
            <td className="number">{text.bytes}</td>
            <td className="number">{text.duration}</td>
            <td className="number">{text.loss}</td>
            <td>
              <code>{text.reasons}</code>
            </td>
          </tr>
        )
      }}
    />
  )
}
