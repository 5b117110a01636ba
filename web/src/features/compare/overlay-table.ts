import { type ChartData, chartData } from '@/lib/charts/chart-data'

import type { CurvePoint } from './curves'

interface Line {
  label: string
  curve: readonly CurvePoint[]
}

/** The curves' values by round; a group has its deviation in a separate column. */
export function overlayTable(lines: readonly Line[]): { names: string[]; data: ChartData } {
  const columns = lines.flatMap(({ label, curve }) => {
    const deviations = curve.flatMap(({ round, sd }) => (sd === undefined ? [] : [{ round, value: sd }]))
    return [
      { name: label, points: curve },
      ...(deviations.length > 0 ? [{ name: `${label}, sd`, points: deviations }] : []),
    ]
  })
  const points = columns.map((column) =>
    column.points.map(({ round, value }) => ({ round, value, time: '', bytes_up: 0 })),
  )
  return { names: columns.map(({ name }) => name), data: chartData(points, 'round', '') }
}
