/**
 * Colours on light and on dark ground, after Okabe and Ito (https://jfly.uni-koeln.de/color/), darkened or lightened until
 * each has a contrast of 3 : 1 with its background (WCAG 1.4.11).
 */
export const COLOURS = [
  { light: '#0072b2', dark: '#3d8fe0' },
  { light: '#d55e00', dark: '#ff8c42' },
  { light: '#00664d', dark: '#1fc795' },
  { light: '#a8469b', dark: '#ee9fd4' },
  { light: '#6b5f00', dark: '#e8dc4a' },
  { light: '#1d1c1a', dark: '#f4f2ec' },
  { light: '#0f9bb8', dark: '#8fe3f2' },
] as const

/** In pixels; none is a solid line. */
const DASHES: readonly (readonly number[])[] = [[], [8, 4], [2, 3]]

interface LineStyle {
  /** A CSS colour that follows the theme. */
  colour: string
  dash: readonly number[]
}

/** The style of a run's line. It depends on the run's place alone, so that other runs never change it. */
export function lineStyle(place: number): LineStyle {
  const { light, dark } = COLOURS[place % COLOURS.length] ?? COLOURS[0]
  return {
    colour: `light-dark(${light}, ${dark})`,
    dash: DASHES[Math.floor(place / COLOURS.length) % DASHES.length] ?? [],
  }
}

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
