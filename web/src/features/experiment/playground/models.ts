import type { MetricSeries } from '@/api/types'

/** The round with the lowest evaluation loss among those that can be asked; the newest where none is measured. */
export function bestRound(rounds: number[], series: MetricSeries[]): number | undefined {
  const losses = series.find(({ name }) => name === 'eval_loss')?.points ?? []
  const measured = losses.flatMap(({ round, value }) =>
    value !== null && rounds.includes(round) ? [{ round, value }] : [],
  )
  const best = measured.reduce<{ round: number; value: number } | undefined>(
    (found, point) => (found === undefined || point.value < found.value ? point : found),
    undefined,
  )
  return best?.round ?? (rounds.length > 0 ? Math.max(...rounds) : undefined)
}

/** What a round's model is called in a list of them. */
export function modelName(round: number, best: number | undefined, newest: number | undefined): string {
  if (round === 0) return 'Base model'
  const marks = [round === best && 'lowest loss', round === newest && 'newest'].filter(Boolean)
  return marks.length > 0 ? `Round ${round} (${marks.join(', ')})` : `Round ${round}`
}
