import { lineStyle } from './palette'

/** A piece of the run's line, and the run's number, which its point has too. */
export function Swatch({ place }: { place: number }) {
  const { colour, dash } = lineStyle(place)
  return (
    <span className="swatch">
      <svg width="26" height="10" aria-hidden="true" style={{ color: colour }}>
        <line x1="1" y1="5" x2="25" y2="5" stroke="currentColor" strokeWidth="3" strokeDasharray={dash.join(' ')} />
      </svg>
      <span className="muted small">{place + 1}</span>
    </span>
  )
}
