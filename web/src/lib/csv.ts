import type { ChartData, XAxis } from './chart-data'

const X_COLUMN: Record<Exclude<XAxis, 'round'>, string> = {
  time: 'seconds',
  clock: 'time',
  bytes: 'bytes_up_so_far',
}

/** A chart's values with all their digits: round, place on the axis, one column per line. */
export function csvOf(data: ChartData, axis: XAxis, columns: readonly string[]): string {
  const head = ['round', ...(axis === 'round' ? [] : [X_COLUMN[axis]]), ...columns]
  const rows = data.rounds.map((round, row) => [
    String(round),
    ...(axis === 'round' ? [] : [xCell(data.x[row] ?? 0, axis)]),
    ...data.lines.map((line) => cell(line[row])),
  ])
  return [head, ...rows].map((row) => `${row.join(',')}\r\n`).join('')
}

function xCell(x: number, axis: XAxis): string {
  return axis === 'clock' ? new Date(x * 1000).toISOString() : String(x)
}

function cell(value: number | null | undefined): string {
  return value === null ? 'NaN' : value === undefined ? '' : String(value)
}
