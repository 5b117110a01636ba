import type { ChartData, XAxis } from './charts/chart-data'

const X_COLUMN: Record<Exclude<XAxis, 'round'>, string> = {
  time: 'seconds',
  clock: 'time',
  bytes: 'bytes_up_so_far',
}

/** A chart's values with all their digits: round, place on the axis, one column per line, and its bounds if thinned out. */
export function csvOf(data: ChartData, axis: XAxis, columns: readonly string[]): string {
  const { thinned } = data
  const bounds = thinned ? [thinned.least, thinned.greatest] : []
  const head = [
    ...(thinned ? ['first_round'] : []),
    'round',
    ...(axis === 'round' ? [] : [X_COLUMN[axis]]),
    ...columns,
    ...(thinned ? ['min', 'max'].flatMap((bound) => columns.map((column) => `${column}_${bound}`)) : []),
  ]
  const rows = data.rounds.map((round, row) => [
    ...(thinned ? [String(thinned.firsts[row])] : []),
    String(round),
    ...(axis === 'round' ? [] : [xCell(data.x[row] ?? 0, axis)]),
    ...[data.lines, ...bounds].flat().map((line) => cell(line[row])),
  ])
  return [head, ...rows].map((row) => `${row.join(',')}\r\n`).join('')
}

function xCell(x: number, axis: XAxis): string {
  return axis === 'clock' ? new Date(x * 1000).toISOString() : String(x)
}

function cell(value: number | null | undefined): string {
  return value === null ? 'NaN' : value === undefined ? '' : String(value)
}
