import { type ChartData, roundsAt, type Value } from '@/lib/charts/chart-data'
import { TableHead } from '@/lib/ui/table-head'

interface Props {
  caption: string
  data: ChartData
  lines: readonly string[]
  format: (value: number) => string
}

/** The same values as a chart, for screen readers and for reading exact figures. */
export function DataTable({ caption, data, lines, format }: Props) {
  return (
    <details className="data-table">
      <summary>Values</summary>
      <div className="data-table-scroll" tabIndex={0} role="region" aria-label={`${caption}, values`}>
        <table>
          <caption className="visually-hidden">{caption} by round</caption>
          <TableHead columns={['Round', ...lines]} numbers={lines} />
          <tbody>
            {data.rounds.map((round, row) => (
              <tr key={round}>
                <th scope="row">{roundsAt(data, row)}</th>
                {data.lines.map((line, column) => (
                  <td key={lines[column]} className="number">
                    {formatValue(line[row], format)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  )
}

/** A value as text, with a dash for a missing one. */
export function formatValue(value: Value, format: (value: number) => string): string {
  if (value === null) return 'not a number'
  return value === undefined ? '–' : format(value)
}
