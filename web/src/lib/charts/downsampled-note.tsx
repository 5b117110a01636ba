/** A note that the server has downsampled the curves. */
export function DownsampledNote({ rounds }: { rounds: number }) {
  if (rounds === 1) return null
  return (
    <p className="muted small thinned-note" data-testid="thinned">
      Each point is the mean of up to {rounds} rounds; the band spans their minimum and maximum. Zoom in for finer
      points.
    </p>
  )
}
