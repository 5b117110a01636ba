import 'uplot/dist/uPlot.min.css'
import '@/lib/ui/line-chart.css'

import { useCallback, useMemo, useState } from 'react'

import { DataTable } from '@/lib/ui/data-table'

import { X_AXES } from './axes'
import { curveOf } from './curves'
import type { Entry } from './entries'
import { type Metric, metricOf } from './metric'
import { type Line, overlayDrawing, type Pointed } from './overlay-drawing'
import { overlayTable } from './overlay-table'
import { Segments, Switch } from './segments'
import { type Ink, useDrawing } from './use-drawing'
import type { CompareAxis, View } from './view'

interface Props {
  /** Those that are shown. */
  entries: readonly Entry[]
  metric: Metric
  /** What can be chosen. */
  names: readonly string[]
  view: View
  onView: (change: (view: View) => View) => void
}

const HEIGHT = 340
const AXES = (['round', 'time', 'bytes'] as const).map((axis) => [axis, X_AXES[axis].name] as const)

/** One metric of all runs in one chart. */
export function OverlaySection({ entries, metric, names, view, onView }: Props) {
  const axis = view.x ?? 'round'
  const lines = useMemo(
    () =>
      entries.map((entry) => ({ label: entry.label, place: entry.place, curve: curveOf(entry, metric.name, axis) })),
    [entries, metric, axis],
  )
  return (
    <section aria-labelledby="overlay">
      <header className="section-header">
        <h2 id="overlay">Curves</h2>
        <div className="compare-controls">
          <select
            aria-label="Metric"
            value={metric.name}
            onChange={(event) => {
              const { value } = event.target
              onView((before) => ({ ...before, metric: value }))
            }}
          >
            {[...new Set([...names, metric.name])].map((name) => (
              <option key={name} value={name}>
                {metricOf(name).label}
              </option>
            ))}
          </select>
          <Segments
            label="Horizontal axis"
            options={AXES}
            value={axis}
            onChoose={(x) => {
              onView((before) => ({ ...before, x: x === 'round' ? undefined : x }))
            }}
          />
          <Switch
            label="log y"
            on={view.y === 'log'}
            onToggle={() => {
              onView((before) => ({ ...before, y: before.y === 'log' ? undefined : 'log' }))
            }}
          />
        </div>
      </header>
      <Overlay lines={lines} metric={metric} axis={axis} log={view.y === 'log'} />
    </section>
  )
}

interface OverlayProps {
  lines: Line[]
  metric: Metric
  axis: CompareAxis
  log: boolean
}

function Overlay({ lines, metric, axis, log }: OverlayProps) {
  const [pointed, setPointed] = useState<Pointed>()
  const draw = useCallback(
    (ink: Ink) => overlayDrawing({ lines, axis, log, unit: metric.unit, onPoint: setPointed }, ink),
    [lines, axis, log, metric],
  )
  const container = useDrawing(draw, HEIGHT)
  const points = lines.reduce((sum, { curve }) => sum + curve.length, 0)
  const table = overlayTable(lines)
  return (
    <figure className="compare-chart" data-testid="compare-overlay" data-points={points}>
      <figcaption>
        <h3>{metric.label}</h3>
        <p className="small">{pointed && readout(pointed, metric)}</p>
      </figcaption>
      <div
        className="compare-plot"
        ref={container}
        role="img"
        aria-label={`${metric.label} of ${lines.length} runs; the table below holds the values`}
      />
      {points === 0 && <p className="compare-empty muted">No run that is shown has a value of this metric yet.</p>}
      {points > 0 && <DataTable caption={metric.label} data={table.data} lines={table.names} format={metric.format} />}
    </figure>
  )
}

function readout({ label, round, value }: Pointed, metric: Metric) {
  return (
    <>
      <span className="muted">
        {label}, round {round}
      </span>{' '}
      <strong>{metric.format(value)}</strong>
    </>
  )
}
