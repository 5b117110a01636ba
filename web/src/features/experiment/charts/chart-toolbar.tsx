import { type ChangeExperimentUrl, type ExperimentUrlState, OTHER_AXES } from '@/features/experiment/url-state'
import type { XAxis } from '@/lib/charts/chart-data'
import { type Smoothing, SMOOTHINGS } from '@/lib/charts/smoothing'
import { oneOf } from '@/lib/search-params'
import { Toggles } from '@/lib/ui/toggles'

const AXES: [XAxis, string][] = [
  ['round', 'Round'],
  ['time', 'Elapsed'],
  ['clock', 'Clock'],
  ['bytes', 'Bytes sent'],
]

const SMOOTH: ['none' | Smoothing, string][] = [
  ['none', 'None'],
  ['light', 'Light'],
  ['medium', 'Medium'],
  ['strong', 'Strong'],
]

const SCALES: ['log' | 'linear', string][] = [
  ['log', 'Log'],
  ['linear', 'Linear'],
]

interface Props {
  /** True if one of the charts can be logarithmic. */
  scaled: boolean
  view: ExperimentUrlState
  onView: ChangeExperimentUrl
}

/** Options for all charts. */
export function ChartToolbar({ scaled, view, onView }: Props) {
  return (
    <div className="chart-toolbar">
      {view.span !== undefined && (
        <button
          type="button"
          className="button quiet"
          onClick={() => {
            onView({ span: undefined })
          }}
        >
          Reset zoom
        </button>
      )}
      {scaled && (
        <Toggles
          label="Loss"
          shown
          options={SCALES}
          chosen={view.y ?? 'log'}
          onChoose={(scale) => {
            onView({ y: oneOf(['linear'], scale) })
          }}
        />
      )}
      <Toggles
        label="Smoothing"
        shown
        options={SMOOTH}
        chosen={view.smooth ?? 'none'}
        onChoose={(smoothing) => {
          onView({ smooth: oneOf(SMOOTHINGS, smoothing) })
        }}
      />
      <Toggles
        label="Over"
        shown
        options={AXES}
        chosen={view.x ?? 'round'}
        onChoose={(axis) => {
          onView({ x: oneOf(OTHER_AXES, axis), span: undefined })
        }}
      />
    </div>
  )
}
