import { type Domain, shades } from '@/lib/heat-map/scale'

import { type CellMetric, css, FIGURES, notANumberColour, stateColours } from './cell-metrics'
import { STATE_LABELS, STATES } from './participation-matrix'

interface Props {
  metric: CellMetric
  domain: Domain | undefined
  dark: boolean
}

const MARKS = { accepted: '', leased: '•', pending: '', expired: '−', rejected: '×' }

/** The meaning of the colours. */
export function Legend({ metric, domain, dark }: Props) {
  const colours = stateColours(dark)
  if (metric === 'state') {
    return (
      <ul className="legend" aria-label="Legend">
        {STATES.map((state) => (
          <Entry key={state} colour={css(colours[state])} mark={MARKS[state]} text={STATE_LABELS[state]} />
        ))}
        <Entry colour="transparent" mark="" text="not selected" />
      </ul>
    )
  }
  const { title, format } = FIGURES[metric]
  return (
    <ul className="legend" aria-label="Legend">
      <li>
        {title}
        {domain === undefined ? ': no values' : <Ramp domain={domain} dark={dark} format={format} />}
      </li>
      <Entry colour={css(colours.pending)} mark="" text="not reported" />
      <Entry colour={css(colours.rejected)} mark="×" text="rejected" />
      {metric === 'loss' && <Entry colour={css(notANumberColour(dark))} mark="−" text="not a number" />}
    </ul>
  )
}

function Entry({ colour, mark, text }: { colour: string; mark: string; text: string }) {
  return (
    <li>
      <span className="legend-swatch" style={{ background: colour }} aria-hidden>
        {mark}
      </span>
      {text}
    </li>
  )
}

function Ramp({ domain, dark, format }: { domain: Domain; dark: boolean; format: (value: number) => string }) {
  const { low, high, log } = domain
  if (low === high) return <span className="legend-ramp-ends">{format(low)}</span>
  return (
    <>
      <span className="legend-ramp-ends">≤ {format(low)}</span>
      <span
        className="legend-ramp"
        style={{ background: `linear-gradient(to right, ${shades(dark).map(css).join(', ')})` }}
        aria-hidden
      />
      <span className="legend-ramp-ends">≥ {format(high)}</span>
      {log && <span className="muted">logarithmic</span>}
    </>
  )
}
