import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'

import { metricsQuery } from '@/api/queries'
import type { Experiment } from '@/api/types'
import type { XAxis } from '@/lib/chart-data'
import { LineChart } from '@/lib/ui/line-chart'

import { experimentPanels } from './panels'

const AXIS_NAMES: [XAxis, string][] = [
  ['round', 'Round'],
  ['time', 'Time'],
  ['bytes', 'Bytes'],
]

interface Props {
  experiment: Experiment
  axis: XAxis
  onAxis: (axis: XAxis) => void
}

export function Charts({ experiment, axis, onAxis }: Props) {
  const metrics = useQuery(metricsQuery(experiment.id))
  const start = experiment.started_at ?? experiment.created_at
  const { panels, range } = useMemo(
    () => experimentPanels(metrics.data?.series ?? [], axis, start),
    [metrics.data, axis, start],
  )

  return (
    <section aria-labelledby="convergence">
      <header className="section-header">
        <h2 id="convergence">Convergence</h2>
        <div className="toggles joined" role="group" aria-label="Horizontal axis">
          {AXIS_NAMES.map(([value, label]) => (
            <button
              key={value}
              type="button"
              aria-pressed={value === axis}
              onClick={() => {
                onAxis(value)
              }}
            >
              {label}
            </button>
          ))}
        </div>
      </header>
      <div className="panels">
        {panels.map((panel) => (
          <LineChart key={panel.testId} axis={axis} range={range} {...panel} />
        ))}
      </div>
    </section>
  )
}
